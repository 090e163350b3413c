"""Memory, launches and small products on this machine's GPUs, and whether the figures can be true.

python bench/gpu/kernels.py memory [--keep FILE]      every GPU, 20 s on two
python bench/gpu/kernels.py launch [--keep FILE]      the first GPU, 30 s

Needs a GPU, and torch in the Python that runs it. Exit code 1 when a figure contradicts another one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shipped import lines_of

from agents.benchmark import all_benchmarks
from webapp.diagnosis.reference.gpus import gpu_spec

AGREE = 1.05  # two ways of reading memory differ by less


def main() -> int:
    ask = argparse.ArgumentParser(description="Whether memory and launch figures can be true.")
    ask.add_argument("what", choices=("memory", "launch"))
    ask.add_argument("--keep", type=Path)
    chosen = ask.parse_args()
    name = f"bench.{chosen.what}"
    lines = lines_of(name, *all_benchmarks()[name].argv, keep=chosen.keep)
    for line in lines:
        if {"error", "note", "stopped"} & line.keys():
            print(line)
    rows = [line for line in lines if "time_us" in line]
    for row in rows:
        print(_row_text(row))
    if not _device(rows):
        print("no GPU was measured")
        return 1
    names = lines[0].get("environment", {}).get("gpus", "").split(", ")
    wrong = list(_memory(rows, names) if chosen.what == "memory" else _launch(rows))
    print(*wrong or ["nothing contradicts itself"], sep="\n")
    return 1 if wrong or lines[-1] != {"end": True} else 0


def _row_text(row: dict[str, Any]) -> str:
    what = " ".join(str(row[k]) for k in ("kernel", "what", "gpu", "batch") if k in row)
    rate = f"{row['gb_per_s']:9.1f} GB/s" if "gb_per_s" in row else " " * 14
    doubt = " unstable" if row["unstable"] else ""
    how = f"{row['timing']}/{row['method']}"
    return f"{what:24} {how:18} {row['time_us']:10.2f} us  p99 {row['p99_us']:10.2f} {rate}{doubt}"


def _memory(rows: list[dict[str, Any]], names: list[str]) -> Iterator[str]:
    """Above the datasheet's peak it was no memory; a caller who waits cannot be faster."""
    for row in _device(rows):
        spec = gpu_spec(names[int(row["gpu"])])
        if spec and row["gb_per_s"] > spec.bandwidth_gb_per_s:
            yield f"{_row_text(row)}: more than the {spec.bandwidth_gb_per_s} GB/s that it can give"
    yield from _faster_when_waited_for(rows, "kernel")


def _launch(rows: list[dict[str, Any]]) -> Iterator[str]:
    """In a graph a kernel costs no more than in a queue; a wait costs something."""
    of = {(r["what"], r["method"]): r["time_us"] for r in rows if "batch" not in r}
    if of["kernel", "graph"] > of["kernel", "queued"] * AGREE:
        yield "an empty kernel takes longer in a graph than in a queue"
    if of["kernel", "call"] < of["kernel", "no_wait"]:
        yield "waiting for a kernel takes less time than starting it"
    yield from _faster_when_waited_for(rows, "what")


def _faster_when_waited_for(rows: list[dict[str, Any]], kind: str) -> Iterator[str]:
    waited = {(r[kind], r["gpu"], r.get("batch")): r["time_us"] for r in rows if r["method"] == "call"}
    for row in _device(rows):
        host_us = waited.get((row[kind], row["gpu"], row.get("batch")))
        if host_us is not None and row["time_us"] > host_us * AGREE:
            yield f"{_row_text(row)}: a caller who waits took {host_us:.2f} us"


def _device(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["timing"] == "device"]


if __name__ == "__main__":
    sys.exit(main())
