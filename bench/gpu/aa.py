"""Noise of repeated runs on the GPUs of this machine, and how often our comparisons err under it.

    python3 bench/gpu/aa.py [--repeats 12] [--keep FILE]

Runs the sweep with two arms, NCCL's own choice and no P2P, each so often in fresh processes; the runs of one
arm should be equal. Then resamples them (bench/aa_resampling.py). Exit code 1: more than 5 % false.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import shipped

from bench import aa_resampling

SIZES = "12K,48K,192K,768K,3M"


def main() -> int:
    ask = argparse.ArgumentParser(description="How often equal runs are called different.")
    ask.add_argument("--repeats", type=int, default=12)
    ask.add_argument("--keep", type=Path, default=None, help="file for the raw output")
    ask.add_argument("--limit", type=float, default=110.0)
    chosen = ask.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        raw = chosen.keep or Path(folder) / "sweep.jsonl"
        raw.parent.mkdir(parents=True, exist_ok=True)
        argv = ("--arms", "p2p_off", "--sizes", SIZES, "--repeats", str(chosen.repeats))
        lines = shipped.lines_of("bench.nccl_sweep", *argv, "--limit", str(chosen.limit), keep=raw)
        for row in lines:
            if "error" in row or "note" in row or "verdict" in row or "stopped" in row:
                print(row)
        blocks = sum(row.get("whole") is True for row in lines)
        print(f"{blocks} blocks in {time.monotonic() - began:.0f} s", flush=True)
        return aa_resampling.main([str(raw)])


if __name__ == "__main__":
    sys.exit(main())
