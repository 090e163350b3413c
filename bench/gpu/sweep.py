"""The sweep over NCCL's settings on the GPUs of this machine: its ranking, how long it took, what it leaves.

python3 bench/gpu/sweep.py [--keep FILE] [--repeats 5] [further arguments of the program]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import shipped

from agents.benchmark import all_benchmarks
from agents.facts.bench import NCCL_SWEEP
from agents.probe import Output
from webapp.diagnosis.prediction.nccl_choice import choice

MOST_SECONDS = 120


def main() -> int:
    ask = argparse.ArgumentParser(description="The sweep, ranked.")
    ask.add_argument("--keep", type=Path, default=None, help="file for the raw output")
    ask.add_argument("--repeats", default="5")
    ask.add_argument("--sizes", default="12K,192K,3M")
    ask.add_argument("--limit", default="140")
    chosen, more = ask.parse_known_args()
    argv = ("--repeats", chosen.repeats, "--sizes", chosen.sizes, "--limit", chosen.limit, *more)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        raw = chosen.keep or Path(folder) / "sweep.jsonl"
        raw.parent.mkdir(parents=True, exist_ok=True)
        lines = shipped.lines_of("bench.nccl_sweep", *argv, keep=raw)
        text = raw.read_text()
    took = time.monotonic() - began
    for row in lines:
        if {"error", "note", "stopped", "verdict", "whole", "plan"} & row.keys():
            print(json.dumps(row)[:400])
    pace(lines, took)
    readings = all_benchmarks()["bench.nccl_sweep"].parse(Output(text))
    reading = next(item for item in readings if item.fact_id == NCCL_SWEEP.id)
    print(reading.kind.value, reading.detail, reading.missing)
    if reading.value is None:
        return 1
    ranked(reading.value)
    return 0 if lines[-1] == {"end": True} and took < MOST_SECONDS else 1


def pace(lines, took) -> None:
    """What a try takes, from whole blocks: the rest is loading torch twice and a first try for nothing."""
    arms = len(next((row["plan"]["arms"] for row in lines if "plan" in row), ()))
    blocks = [row["seconds"] for row in lines if row.get("whole") is True]
    print(f"{sum('outcome' in row for row in lines)} tries, {took:.0f} s in all", flush=True)
    if arms and blocks:
        whole = f"{len(blocks)} whole blocks of {arms} arms, {max(blocks):.1f} s at most"
        print(f"{whole}: {sum(blocks) / len(blocks) / arms:.2f} s a try", flush=True)


def ranked(result) -> None:
    recommendation = choice(result)
    print(f"{recommendation.says}. {recommendation.price}")
    for effect in recommendation.compared.arms:
        where = f"{effect.arm.transport}  {effect.arm.why}"
        if effect.ratio is None:
            print(f"  {effect.arm.name:18} {effect.standing.value:8} {where}")
            continue
        sizes = "  ".join(f"{size}: {ratio:.3f}" for size, ratio in effect.by_size)
        print(
            f"  {effect.arm.name:18} {effect.standing.value:8} {effect.ratio:.3f} "
            f"({effect.low:.3f} to {effect.high:.3f}) chance {effect.chance:.5f}  {sizes}  {where}"
        )


if __name__ == "__main__":
    sys.exit(main())
