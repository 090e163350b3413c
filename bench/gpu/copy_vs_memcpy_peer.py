"""Our copy figures beside cudaMemcpyPeerAsync timed in C++ (peer_copies.cu), on two GPUs of one machine.

    python3 bench/gpu/copy_vs_memcpy_peer.py [folder for the raw outputs]

Peer access on and off, each side in fresh processes, ours and the reference by turns, as often as fits into
--seconds. In every second repeat our program looks at no telemetry, which shows what looking costs.
Within means: 3 %, or 0.3 µs, or no further apart than the reference's own repeats.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from shipped import lines_of

PARTS = {False: "no_peer", True: "peer"}
SHARE, LEAST_US = 0.03, 0.3
FEWEST = 5

Times = dict[tuple[bool, int], list[float]]


def compiled(folder: Path) -> Path:
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source, program = Path(__file__).with_name("peer_copies.cu"), folder / "peer_copies"
    subprocess.run([nvcc, "-O2", "-o", str(program), str(source)], check=True)
    return program


def reference(program: Path, times: Times) -> None:
    for access in PARTS:
        command = [str(program), "on" if access else "off"]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in out.splitlines():
            size, median_us, *_ = line.split()
            times[access, int(size)].append(float(median_us))


def ours(
    times: Times,
    intervals: dict[tuple[bool, int], list[tuple[float, float]]],
    *argv: str,
    keep: Path,
) -> None:
    wanted = ("--only", "no_peer,peer", "--pairs", "first", "--row-seconds", "0.05", *argv)
    for row in lines_of("bench.copy", *wanted, keep=keep):
        if "error" in row or row.get("lost"):
            print("ours:", row, file=sys.stderr)
        if row.get("path") == "peer" and row["timing"] == "device":
            key = row["peer_access"], row["size_bytes"]
            times[key].append(row["time_us"])
            intervals[key].append((row["ci_low_us"], row["ci_high_us"]))


def spread(values: list[float]) -> float:
    return max(values) / min(values) - 1


def show(mine: Times, theirs: Times) -> int:
    """Prints the table. How many rows are not within."""
    outside = 0
    print("peer  bytes       ours_us   ref_us    ratio   diff_us  ours_spread ref_spread  within")
    for key in sorted(theirs):
        if key not in mine:
            print(f"{'on' if key[0] else 'off':<5} {key[1]:<10}  ours has no row")
            outside += 1
            continue
        one, other = median(mine[key]), median(theirs[key])
        room = max(SHARE, spread(theirs[key])) * other
        within = abs(one - other) <= max(room, LEAST_US)
        outside += not within
        print(
            f"{'on' if key[0] else 'off':<5} {key[1]:<10} {one:9.3f} {other:9.3f} {one / other:7.4f} "
            f"{one - other:+9.3f} {spread(mine[key]):10.1%} {spread(theirs[key]):10.1%}   {within}"
        )
    return outside


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folder", nargs="?", default=os.environ.get("OUT", "."))
    ask.add_argument("--seconds", type=float, default=85.0)
    chosen = ask.parse_args()
    began, folder = time.monotonic(), Path(chosen.folder)
    program = compiled(folder)
    theirs, looked, blind = defaultdict(list), defaultdict(list), defaultdict(list)
    intervals = defaultdict(list)
    longest = 0.0
    for repeat in itertools.count():
        start = time.monotonic()
        if start - began + longest > chosen.seconds:
            break
        if repeat % 2:
            ours(blind, intervals, "--telemetry-seconds", "0", keep=folder / f"copy-{repeat}.jsonl")
            reference(program, theirs)
        else:
            reference(program, theirs)
            ours(looked, intervals, keep=folder / f"copy-{repeat}.jsonl")
        longest = max(longest, time.monotonic() - start)
    program.unlink()
    mine = defaultdict(list, {k: looked[k] + blind[k] for k in {*looked, *blind}})
    outside = show(mine, theirs)
    print(
        f"\n{repeat} repeats by turns in {time.monotonic() - began:.0f} s; {outside} rows not within"
    )
    if repeat < FEWEST:
        print(f"fewer than {FEWEST} repeats: give more --seconds")
    for key in sorted(looked.keys() & blind.keys()):
        ratio = median(looked[key]) / median(blind[key])
        print(f"telemetry on / off, {'peer' if key[0] else 'no peer'}, {key[1]} bytes: {ratio:.4f}")
    smallest = min((size for _, size in mine), default=0)
    on, off = intervals[True, smallest], intervals[False, smallest]
    if on and off:
        apart = max(high for _, high in on) < min(low for low, _ in off)
        print(f"{smallest} bytes, peer access on and off told apart by every interval: {apart}")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
