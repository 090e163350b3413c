"""Feeds damaged outputs to every parser, the recogniser and the archive reader, many more than the tests do.

    python bench/fuzz_parsers.py [--inputs 200000] [--seed 1] [--processes 2] [--limit-s 5]

Prints how many were tried, every failure with its seed, and the slowest inputs. Exit 1 on a failure.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contextlib

from agents.archives import ArchiveError, unpack
from agents.benchmark import Benchmark, all_benchmarks
from agents.framing import clean
from agents.probe import Output, Probe
from agents.probes import all_probes
from agents.raw_reading import read_raw
from agents.redaction import redact
from tests.agents.mutating import mutants

BATCH = 1000
READERS: dict[str, Probe | Benchmark] = {**all_probes(), **all_benchmarks()}


class HangError(BaseException):
    """One input took longer than the limit. No Exception, which the parse boundary would swallow."""


def try_one(reader_id: str, raw: bytes, rng: random.Random) -> None:
    """Its own parser, another one, everything together, and once in a while the other readers."""
    text = clean(raw)
    for name in {reader_id or rng.choice(list(READERS)), rng.choice(list(READERS))}:
        readings = READERS[name].parse(Output(text, "", rng.choice((0, 1, 127, None))))
        assert {r.fact_id for r in readings} >= {f.id for f in READERS[name].supplies}, name
    contents = read_raw(raw, role=None, hint=reader_id)
    for item in contents.items:
        for reading in item.readings:
            assert not reading.detail.startswith("its parser failed"), reading.detail
    if rng.random() < 0.1:
        assert redact(text).text.count("\n") == text.count("\n")
        packed = bytearray(gzip.compress(raw, 1))
        packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(ArchiveError):
            unpack(bytes(packed))


def batch(job: tuple[int, int, float]) -> tuple[int, list[str], tuple[float, int]]:
    """(inputs tried, failures, the slowest one's seconds and number) of one seed's batch."""
    seed, count, limit_s = job
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, _hung)
    failures: list[str] = []
    slowest = (0.0, 0)
    for number, (reader_id, raw) in enumerate(mutants(count, seed)):
        begin = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            try_one(reader_id, raw, rng)
        except (Exception, HangError):
            failures.append(f"seed {seed} input {number} ({reader_id}):\n{traceback.format_exc(limit=-3)}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, (time.perf_counter() - begin, number))
    return count, failures, slowest


def _hung(_: int, __: FrameType | None) -> None:
    raise HangError


def jobs(inputs: int, seed: int, limit_s: float) -> Iterator[tuple[int, int, float]]:
    for first in range(0, inputs, BATCH):
        yield seed * 1_000_000 + first // BATCH, min(BATCH, inputs - first), limit_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=5.0)
    options = parser.parse_args()
    begin = time.perf_counter()
    tried, failed, slowest = 0, 0, (0.0, 0, 0)
    with multiprocessing.Pool(options.processes) as pool:
        todo = list(jobs(options.inputs, options.seed, options.limit_s))
        for (seed, _, _), (count, failures, (seconds, number)) in zip(todo, pool.imap(batch, todo), strict=True):
            tried += count
            failed += len(failures)
            slowest = max(slowest, (seconds, seed, number))
            print(*failures[:3], sep="\n", end="\n" if failures else "", flush=True)
    print(
        f"{tried:,} inputs, {failed} failures, {time.perf_counter() - begin:.0f} s; "
        f"slowest {slowest[0] * 1000:.0f} ms (seed {slowest[1]}, input {slowest[2]})"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
