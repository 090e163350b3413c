"""How often a comparison calls equal runs different, and real differences by their name.

Usage: python -m bench.aa_resampling [FILE…]

FILE: outputs of repeated runs of one state, from peerpath's all-reduce or copy payload or from
nccl-tests, one or several runs in each. Without any, the captured ones of this repository's tests.

Runs that should be equal differ: that is the noise. What is left of a run's times, on logarithms, once the
mean of its size is taken off is one draw of it, all sizes together because they share what the machine did;
with few repeats it is stretched by √(n/(n−1)) so that its variance is not too small. A resample draws runs
from these for both sides (A/A); for the power one side is faster by a known share (A/B). Each goes the whole
way of step 8, gate included; an A/B in turns also while the machine slows down by 1 % a run. Intervals are
Wilson's.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from agents.benchmark import all_benchmarks
from agents.facts import Fact
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    SERVING,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    ServingRow,
    Timing,
)
from agents.probe import Output
from webapp.diagnosis.case import Restart
from webapp.diagnosis.compare.calibration import wilson
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.kinds import KINDS, Kind
from webapp.diagnosis.compare.schedule import Arm, plan, trial
from webapp.diagnosis.compare.verification import Pick, verified
from webapp.diagnosis.facts import Facts, Sourced

RESAMPLES = 1000
RUNS = 5
SHIFTS = (0.03, 0.05, 0.10)
READERS = ("bench.allreduce", "bench.nccl_tests", "bench.copy")

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
    shared = sorted(set.intersection(*(set(run) for runs in repeated for run in runs)) if repeated else ())
    if not shared:
        raise ValueError("no two runs of one state share a size")
    means = [{s: fmean(math.log(run[s]) for run in runs) for s in shared} for runs in repeated]
    draws = [
        {s: (math.log(run[s]) - mean[s]) * math.sqrt(len(runs) / (len(runs) - 1)) for s in shared}
        for runs, mean in zip(repeated, means, strict=True)
        for run in runs
    ]
    return Noise({s: math.exp(means[0][s]) for s in shared}, tuple(draws))


def verify_calls(
    kind: Kind, results: Callable[[Run], object], noise: Noise, chance: random.Random, factor: float
) -> bool:
    """The whole of step 8: both states as facts, the gate, then the effect."""
    items = [
        Sourced(kind.fact.known(results(noise.run(chance, speed))), f"run@{epoch}{n}", epoch, n)
        for epoch, speed in enumerate((1.0, factor))
        for n in range(RUNS)
    ]
    (comparison,) = verified(Facts.of(items), Pick(0), Pick(1), frozenset())
    return comparison.compared.outcome in {Outcome.IMPROVED, Outcome.WORSE}


def a_trial_calls(drift: float, noise: Noise, chance: random.Random, factor: float) -> bool:
    """An A/B in turns, while the machine slows down by the share `drift` from each run to the next."""
    planned = plan(Restart.NONE, asks_engine=False, runs=RUNS)
    items = []
    for step in planned.steps:
        speed = (factor if step.arm is Arm.B else 1.0) * (1 + drift) ** step.number
        source = f"run@{step.number}"
        reading = COPY.known(_copies(noise.run(chance, speed)))
        items.append((step, Sourced(reading, source, 0, step.number)))
    facts = Facts.of(item for _, item in items)
    comparison = trial(planned, _kind(COPY), facts, items, frozenset()).verified
    return comparison is not None and comparison.compared.outcome in {Outcome.IMPROVED, Outcome.WORSE}


def _kind(fact: Fact[Any]) -> Kind:
    return next(kind for kind in KINDS if kind.fact is fact)


def _copies(run: Run) -> CopyResult:
    return CopyResult(tuple(CopyRow(CopyPath.PEER, "0", "1", s, us, Timing.DEVICE) for s, us in run.items()))


def _sums(run: Run) -> AllReduceResult:
    rows = tuple(AllReduceRow(s, us, 2, in_place=True, wrong=0, graph=True) for s, us in run.items())
    return AllReduceResult(rows, None, Timing.DEVICE)


def _ladder(run: Run) -> tuple[ServingRow, ...]:
    """As many rungs as sizes, with their noise: no repeated runs of a server were captured."""
    rates = enumerate(run.values())
    return tuple(ServingRow(4**rung, output_tokens_per_s=1e6 / us) for rung, us in rates)


Differs = Callable[[Noise, random.Random, float], bool]
COMPARISONS: dict[str, Differs] = {
    "copies": partial(verify_calls, _kind(COPY), _copies),
    "all-reduces": partial(verify_calls, _kind(ALLREDUCE), _sums),
    "serving": partial(verify_calls, _kind(SERVING), _ladder),
    "A/B in turns": partial(a_trial_calls, 0.0),
    "A/B drifting": partial(a_trial_calls, 0.01),
}


def rate(differs: Differs, noise: Noise, shift: float, resamples: int = RESAMPLES) -> int:
    """In how many resamples a difference is called. shift: share by which one side is faster."""
    chance = random.Random(round(shift * 1000))
    return sum(differs(noise, chance, 1 - shift) for _ in range(resamples))


def runs_in(paths: Iterable[Path]) -> dict[str, list[Run]]:
    """Runs by the state they are of: what was timed, and under which settings."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for path in paths:
        text = path.read_text("utf-8", "replace")
        for reader in READERS:
            for reading in all_benchmarks()[reader].parse(Output(text)):
                for state, run in _states(reading.value):
                    runs[state].append(run)
    return runs


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
            print(f"{name:12} {what:22} called different {hits / RESAMPLES:6.1%} ({low:.1%} to {high:.1%})")
            worst = worst if shift else max(worst, hits)
    print("A/A: at most 5 %" if worst <= 0.05 * RESAMPLES else "A/A: more than 5 %")
    return 0 if worst <= 0.05 * RESAMPLES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
