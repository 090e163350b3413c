"""Our copy figures beside cudaMemcpyPeerAsync timed in C++ (peer_copies.cu), on two GPUs of one machine.

    python3 bench/gpu/copy_vs_memcpy_peer.py [folder for raw outputs] [--seconds 85] [--nvbandwidth PROGRAM]

Run with the Python that has torch. Peer access on and off, each side in fresh processes, ours and the
reference by turns, as often as fits into --seconds; ours is what the payload runs, forked from a process that
has loaded torch. In every second repeat our program looks at no telemetry, which shows what looking costs.
Within means: 3 %, or 0.3 µs, or no further apart than the reference's own repeats. A copy with two modes
(DECISIONS.md, record 8) has no middle to compare: its median has to lie among the reference's samples.
nvbandwidth (https://github.com/NVIDIA/nvbandwidth), where a build of it is given, stands beside ours from
16 MiB on, with peer access: without it, it waives its tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import ModuleType

from shipped import ROOT

PAYLOADS = ROOT / "agents" / "payloads"
SHARE, LEAST_US, MODES = 0.03, 0.3, 1.3
FEWEST = 5
MIB = 2**20
NVBANDWIDTH_MIB = (16, 64)
ARGV = ("--only", "no_peer,peer", "--pairs", "first", "--quick", "--row-seconds", "0.03")

Key = tuple[bool, int]  # peer access, bytes
Times = dict[Key, list[float]]


@dataclass
class Found:
    """µs by peer access and size, one entry a repeat. ranges: (smallest, largest) sample of the reference;
    our intervals. modes: sizes whose samples lie in two groups on either side."""

    theirs: Times = field(default_factory=lambda: defaultdict(list))
    nvbandwidth: Times = field(default_factory=lambda: defaultdict(list))
    looked: Times = field(default_factory=lambda: defaultdict(list))
    blind: Times = field(default_factory=lambda: defaultdict(list))
    ranges: dict[Key, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    intervals: dict[Key, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    modes: set[Key] = field(default_factory=set)

    def mine(self, key: Key) -> list[float]:
        return [*self.looked.get(key, ()), *self.blind.get(key, ())]


def compiled(folder: Path) -> Path:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source, program = Path(__file__).with_name("peer_copies.cu"), folder / "peer_copies"
    subprocess.run([nvcc, "-O2", "-o", str(program), str(source)], check=True)
    return program


def reference(program: Path, times: Found) -> None:
    for access in (False, True):
        command = [str(program), "on" if access else "off"]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in out.splitlines():
            size, middle, smallest, largest = line.split()
            key = access, int(size)
            times.theirs[key].append(float(middle))
            times.ranges[key].append((float(smallest), float(largest)))
            if float(largest) > MODES * float(smallest):
                times.modes.add(key)


def nvbandwidth(program: Path, times: Found) -> None:
    """GPU 0 writes to GPU 1 by copy engine: row 1, column 0 of "GPU(row) <- GPU(column)", 10^9 bytes/s."""
    for mib in NVBANDWIDTH_MIB:
        command = [str(program), "-j", "-b", str(mib), "-t", "device_to_device_memcpy_write_ce"]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30).stdout
        (test,) = json.loads(out[out.index("{") :])["nvbandwidth"]["testcases"]
        if test["status"] != "Passed":
            print("nvbandwidth:", test, file=sys.stderr)
            continue
        gb_per_s = float(test["bandwidth_matrix"][1][0])
        times.nvbandwidth[True, mib * MIB].append(mib * MIB / gb_per_s / 1e3)


def program() -> ModuleType:
    """The payload's own __main__, with the modules beside it."""
    sys.path[:0] = [str(PAYLOADS / folder) for folder in ("copy", "_shared")]
    spec = importlib.util.spec_from_file_location("copy_payload", PAYLOADS / "copy" / "__main__.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ours(payload: ModuleType, times: Found, *, look: bool, keep: Path) -> None:
    from lines import HEADED
    from telemetry import EVERY_SECONDS, sampled

    HEADED[0] = 0
    chosen = payload.options(list(ARGV))
    with written_to(keep), sampled(EVERY_SECONDS if look else 0):
        parts = payload.Parts("peerpath.copy/1", payload.PARTS, payload.run_on_cpu)
        parts.run(chosen, list(ARGV), time.monotonic() + 60)
    for row in map(json.loads, keep.read_text().splitlines()):
        if "error" in row or row.get("lost"):
            print("ours:", row, file=sys.stderr)
        if row.get("path") == "peer" and row["timing"] == "device":
            key = row["peer_access"], row["size_bytes"]
            (times.looked if look else times.blind)[key].append(row["time_us"])
            times.intervals[key].append((row["ci_low_us"], row["ci_high_us"]))
            if row["unstable"]:
                times.modes.add(key)


@contextmanager
def written_to(file: Path) -> Iterator[None]:
    """Standard output is that file meanwhile; standard input stays open, as the payload wants."""
    sys.stdout.flush()
    screen, (read, write) = os.dup(1), os.pipe()
    os.dup2(read, 0)
    with file.open("wb") as out:
        os.dup2(out.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(screen, 1)
            for one in (screen, read, write):
                os.close(one)


def spread(values: list[float]) -> str:
    """Between repeats, which one repeat cannot show."""
    return f"{max(values) / min(values) - 1:.1%}" if len(values) > 1 else "–"


def within(key: Key, times: Found) -> bool:
    mine, theirs = times.mine(key), times.theirs[key]
    if key in times.modes:
        lowest = min(low for low, _ in times.ranges[key])
        highest = max(high for _, high in times.ranges[key])
        return lowest * (1 - SHARE) <= median(mine) <= highest * (1 + SHARE)
    share = max(SHARE, max(theirs) / min(theirs) - 1)
    return abs(median(mine) - median(theirs)) <= max(share * median(theirs), LEAST_US)


def show_nvbandwidth(times: Found) -> int:
    """Prints ours beside nvbandwidth's. How many sizes are neither within 3 % nor within its own spread."""
    outside = 0
    for key in sorted(times.nvbandwidth):
        mine, theirs = median(times.mine(key)), times.nvbandwidth[key]
        share = max(SHARE, max(theirs) / min(theirs) - 1)
        good = abs(mine / median(theirs) - 1) <= share
        outside += not good
        ours, other = (key[1] / us / 1e3 for us in (mine, median(theirs)))
        print(
            f"nvbandwidth, {key[1]} bytes: ours {ours:.2f} GB/s, it {other:.2f} GB/s, "
            f"ratio {ours / other:.4f}, its spread {spread(theirs)}, within: {good}"
        )
    return outside


def show(times: Found) -> int:
    """Prints the table. How many rows are not within."""
    outside = 0
    print("peer  bytes       ours_us   ref_us    ratio   diff_us  ours_spread ref_spread  within")
    for key in sorted(times.theirs):
        word = "on" if key[0] else "off"
        mine, theirs = times.mine(key), times.theirs[key]
        if not mine:
            print(f"{word:<5} {key[1]:<10}  ours has no row")
            outside += 1
            continue
        one, other, good = median(mine), median(theirs), within(key, times)
        outside += not good
        modes = ", two modes" if key in times.modes else ""
        print(
            f"{word:<5} {key[1]:<10} {one:9.3f} {other:9.3f} {one / other:7.4f} "
            f"{one - other:+9.3f} {spread(mine):>10} {spread(theirs):>10}   {good}{modes}"
        )
    return outside


def report(times: Found, repeats: int, seconds: float) -> int:
    """Prints what was found; 1 when a row is not within, or was not measured often enough."""
    outside = show(times)
    print(f"\n{repeats} repeats by turns in {seconds:.0f} s; {outside} rows not within")
    if repeats < FEWEST:
        print(f"fewer than {FEWEST} repeats: give more --seconds")
    for key in sorted(times.looked.keys() & times.blind.keys()):
        ratio = median(times.looked[key]) / median(times.blind[key])
        print(f"telemetry on / off, {'peer' if key[0] else 'no peer'}, {key[1]} bytes: {ratio:.4f}")
    outside += show_nvbandwidth(times)
    smallest = min((size for _, size in times.intervals), default=0)
    on, off = times.intervals.get((True, smallest)), times.intervals.get((False, smallest))
    if on and off:
        apart = max(high for _, high in on) < min(low for low, _ in off)
        print(f"{smallest} bytes, peer access on and off told apart by every interval: {apart}")
    return int(outside > 0 or repeats < FEWEST or not times.theirs)


def main() -> int:
    ask = argparse.ArgumentParser(description="Ours beside cudaMemcpyPeerAsync.")
    ask.add_argument("folder", nargs="?", type=Path, default=Path(os.environ.get("OUT", ".")))
    ask.add_argument("--seconds", type=float, default=85.0)
    ask.add_argument("--nvbandwidth", type=Path, help="its program, built")
    chosen = ask.parse_args()
    began, times, longest, repeats = time.monotonic(), Found(), 0.0, 0
    chosen.folder.mkdir(parents=True, exist_ok=True)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    copies, payload = compiled(chosen.folder), program()
    sys.modules["machine"].load_torch()  # starts nothing on any GPU: the parts are forked from here
    for repeats in itertools.count():
        start = time.monotonic()
        if start - began + longest > chosen.seconds:
            break
        keep, look = chosen.folder / f"copy-{repeats}.jsonl", repeats % 2 == 0
        if look:
            reference(copies, times)
        ours(payload, times, look=look, keep=keep)
        if not look:
            reference(copies, times)
        if chosen.nvbandwidth:
            nvbandwidth(chosen.nvbandwidth, times)
        longest = max(longest, time.monotonic() - start)
        print(f"repeat {repeats + 1} took {time.monotonic() - start:.1f} s", flush=True)
    copies.unlink()
    return report(times, repeats, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
