"""How often a comparison calls equal runs different, and real differences by their name.

Usage: python -m bench.aa_resampling [FILE…]

FILE: outputs of repeated runs of one state, from peerpath's all-reduce, copy or sweep payload or from
nccl-tests, one or several runs in each. Without any, the captured ones of this repository's tests.

Runs that should be equal differ: that is the noise. What is left of a run's times, on logarithms, once the
mean of its size is taken off is one draw of it, all sizes together because they share what the machine did;
with few repeats it is stretched by √(n/(n−1)) so that its variance is not too small. A resample draws runs
from these for both sides (A/A); for the power one side is faster by a known share (A/B). Intervals are
Wilson's.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from agents.benchmark import all_benchmarks
from agents.facts.bench import (
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    SweepArm,
    SweepResult,
    SweepRow,
    Timing,
)
from agents.probe import Output
from webapp.diagnosis.compare.allreduces import compare_allreduces
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.sweep import compare_sweep

RESAMPLES = 1000
RUNS, BLOCKS, ARMS = 5, 5, 13
SHIFTS = (0.03, 0.05, 0.10)
READERS = ("bench.allreduce", "bench.nccl_tests", "bench.copy", "bench.nccl_sweep")

Run = dict[int, float]  # µs by bytes


@dataclass(frozen=True, slots=True)
class Noise:
    """typical: µs by bytes of the first state. draws: what one run adds to the logarithm at each size."""

    typical: Run
    draws: tuple[Run, ...]

    def run(self, chance: random.Random, factor: float = 1.0) -> Run:
        drawn = chance.choice(self.draws)
        return {size: us * factor * math.exp(drawn[size]) for size, us in self.typical.items()}


def noise_of(states: Iterable[Sequence[Run]]) -> Noise:
    """states: repeated runs of one state each. Raises ValueError when none has a repeat or a common size."""
    repeated = [runs for runs in states if len(runs) > 1]
    shared = sorted(
        set.intersection(*(set(run) for runs in repeated for run in runs)) if repeated else ()
    )
    if not shared:
        raise ValueError("no two runs of one state share a size")
    means = [{s: fmean(math.log(run[s]) for run in runs) for s in shared} for runs in repeated]
    draws = [
        {s: (math.log(run[s]) - mean[s]) * math.sqrt(len(runs) / (len(runs) - 1)) for s in shared}
        for runs, mean in zip(repeated, means, strict=True)
        for run in runs
    ]
    return Noise({s: math.exp(means[0][s]) for s in shared}, tuple(draws))


def copies_differ(noise: Noise, chance: random.Random, factor: float) -> bool:
    before, after = ([_copies(noise.run(chance, f)) for _ in range(RUNS)] for f in (1.0, factor))
    found = compare_copies(before[0], after[0], more_before=before[1:], more_after=after[1:])
    return found.outcome in {Outcome.IMPROVED, Outcome.WORSE}


def sums_differ(noise: Noise, chance: random.Random, factor: float) -> bool:
    before, after = ([_sums(noise.run(chance, f)) for _ in range(RUNS)] for f in (1.0, factor))
    found = compare_allreduces(before[0], after[0], more_before=before[1:], more_after=after[1:])
    return found.outcome in {Outcome.IMPROVED, Outcome.WORSE}


def an_arm_differs(noise: Noise, chance: random.Random, factor: float) -> bool:
    """A/A: any of the arms, which are all equal. A/B: the one that is faster, by name."""
    names = ["baseline", *(f"arm_{n}" for n in range(1, ARMS))]
    rows = tuple(
        SweepRow(name, block, size, us)
        for block in range(1, BLOCKS + 1)
        for name in names
        for size, us in noise.run(chance, factor if name == "arm_1" else 1.0).items()
    )
    arms = tuple(SweepArm(name, {}, "right") for name in names)
    weights = tuple((size, 1 / len(noise.typical)) for size in noise.typical)
    found = compare_sweep(SweepResult(arms, rows, weights, BLOCKS, 2))
    named = {effect.arm.name for effect in found.differing}
    return bool(named) if factor == 1.0 else "arm_1" in named


def _copies(run: Run) -> CopyResult:
    return CopyResult(
        tuple(CopyRow(CopyPath.PEER, "0", "1", s, us, Timing.DEVICE) for s, us in run.items())
    )


def _sums(run: Run) -> AllReduceResult:
    rows = tuple(
        AllReduceRow(s, us, 2, in_place=True, wrong=0, graph=True) for s, us in run.items()
    )
    return AllReduceResult(rows, None, Timing.DEVICE)


COMPARISONS: dict[str, Callable[[Noise, random.Random, float], bool]] = {
    "copies": copies_differ,
    "all-reduces": sums_differ,
    "sweep": an_arm_differs,
}


def rate(
    differs: Callable[[Noise, random.Random, float], bool],
    noise: Noise,
    shift: float,
    resamples: int = RESAMPLES,
) -> int:
    """In how many resamples a difference is called. shift: share by which one side is faster."""
    chance = random.Random(round(shift * 1000))
    return sum(differs(noise, chance, 1 - shift) for _ in range(resamples))


def wilson(hits: int, of: int) -> tuple[float, float]:
    """95 % interval of a rate."""
    z, p = 1.96, hits / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + (z / (2 * of)) ** 2)
    return max(0.0, (middle - half) / (1 + z * z / of)), min(
        1.0, (middle + half) / (1 + z * z / of)
    )


def runs_in(paths: Iterable[Path]) -> dict[str, list[Run]]:
    """Runs by the state they are of: what was timed, and under which settings."""
    found: dict[str, list[Run]] = defaultdict(list)
    for path in paths:
        text = path.read_text("utf-8", "replace")
        for reader in READERS:
            for reading in all_benchmarks()[reader].parse(Output(text)):
                for state, run in _states(reading.value):
                    found[state].append(run)
    return found


def _states(value: object) -> list[tuple[str, Run]]:
    if isinstance(value, AllReduceResult):
        places = {row.in_place for row in value.rows}
        return [
            (
                f"all-reduce p2p={value.p2p} in_place={place}",
                {r.size_bytes: r.time_us for r in value.rows if r.in_place is place and r.graph},
            )
            for place in places
            if any(r.graph and r.in_place is place for r in value.rows)
        ]
    if isinstance(value, SweepResult):
        tries: dict[tuple[str, int], Run] = defaultdict(dict)
        for row in value.rows:
            tries[row.arm, row.block][row.size_bytes] = row.time_us
        return [(f"sweep {arm}", run) for (arm, _), run in tries.items()]
    if isinstance(value, CopyResult):
        own: dict[str, Run] = defaultdict(dict)
        for copied in value.rows:
            if copied.timing is Timing.DEVICE and copied.size_bytes and not copied.unstable:
                ends = f"{copied.source}>{copied.destination} access={copied.peer_access}"
                own[f"copy {copied.path} {ends}"][copied.size_bytes] = copied.time_us
        return list(own.items())
    return []


def main(argv: Sequence[str]) -> int:
    captured = sorted(Path(__file__).parent.parent.glob("tests/webapp/diagnosis/repeats/*"))
    states = runs_in([Path(name) for name in argv] or captured)
    for state, runs in sorted(states.items()):
        print(f"{len(runs):4} runs of {state}")
    noise = noise_of(states.values())
    for size in noise.typical:
        ends = sorted(draw[size] for draw in noise.draws)
        print(f"  {size:>10} bytes: a run is off by {ends[0]:+.2%} to {ends[-1]:+.2%}")
    worst = 0
    for name, differs in COMPARISONS.items():
        for shift in (0.0, *SHIFTS):
            hits = rate(differs, noise, shift)
            low, high = wilson(hits, RESAMPLES)
            what = f"one side {shift:.0%} faster" if shift else "no difference (A/A)"
            print(
                f"{name:12} {what:22} called different {hits / RESAMPLES:6.1%} ({low:.1%} to {high:.1%})"
            )
            worst = worst if shift else max(worst, hits)
    print("A/A: at most 5 %" if worst <= 0.05 * RESAMPLES else "A/A: more than 5 %")
    return 0 if worst <= 0.05 * RESAMPLES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
