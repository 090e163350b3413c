"""Runs programs as they are shipped, whole, and says how long each took and what came of it.

    python3 bench/gpu/whole_runs.py bench.copy bench.contention [--folder FOLDER]

The raw lines are kept in the folder as <benchmark>.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from shipped import ROOT, lines_of

sys.path.insert(0, str(ROOT))
from agents.benchmark import all_benchmarks
from agents.facts.bench import TELEMETRY
from agents.probe import Output


def run(name: str, folder: Path, longest: float) -> bool:
    benchmark = all_benchmarks()[name]
    began = time.monotonic()
    lines = lines_of(name, *benchmark.argv, keep=folder / f"{name}.jsonl")
    seconds = time.monotonic() - began
    rows = [line for line in lines if "time_us" in line]
    looks = [line["at_s"] for line in lines if "gpus" in line]
    rate = (len(looks) - 1) / (looks[-1] - looks[0]) if len(looks) > 1 else 0.0
    unstable = sum(row.get("unstable") is True for row in rows)
    whole = lines[-1:] == [{"end": True}]
    print(f"{name}: {seconds:.1f} s, {len(rows)} rows, {unstable} unstable, {rate:.2f} looks/s")
    for line in lines:
        if {"note", "error", "stopped"} & line.keys():
            print("  ", json.dumps(line))
    for reading in benchmark.parse(Output("\n".join(map(json.dumps, lines)))):
        print(f"   {reading.fact_id}: {reading.kind.value} {reading.detail} {reading.missing}")
        if reading.fact_id == TELEMETRY.id:
            for gpu in reading.value or ():
                print("     ", gpu)
    good = whole and seconds < longest and rate >= 2
    print(f"   ended, under {longest:g} s and at 2 looks a second or more: {good}")
    return good


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("benchmarks", nargs="+")
    ask.add_argument("--folder", default=os.environ.get("OUT", "."))
    ask.add_argument("--longest", type=float, default=60.0, help="seconds that one may take")
    chosen = ask.parse_args()
    results = [run(name, Path(chosen.folder), chosen.longest) for name in chosen.benchmarks]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
