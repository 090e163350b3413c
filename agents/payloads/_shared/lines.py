"""Prints the program's lines: one JSON object a line, with the statistics in a row."""

import json
import mmap
import os
import random
import statistics
import time

BEGAN = time.monotonic()  # of the watching process, which forks the others
# Interquartile ranges outside the quartiles: "far out" in J. W. Tukey, Exploratory Data Analysis, 1977.
FENCE = 3
MARKS = {}  # true for every row of this run
FIRST_NOTES = []  # notes from before the header, printed after it
HEADED = mmap.mmap(-1, 1)  # shared by all processes of this run: whether the header was printed


class Refusal(Exception):  # noqa: N818
    """Why nothing can be measured, and how to fix it."""

    def __init__(self, error, fix):
        super().__init__(error)
        self.line = {"error": error, "fix": fix}


def elapsed_s():
    return round(time.monotonic() - BEGAN, 2)


def say(**line):
    os.write(1, (json.dumps(line) + "\n").encode())


def lost(what, error):
    """Notes that rows will be missing, and why."""
    first = str(error).split("\n")[0] or type(error).__name__
    say(note=f"{what}: {first[:300]}", lost=True)


def summary(samples_us):
    """Median with p95, p99 and a bootstrap 95 % interval.

    unstable, not to be compared: the interval is wider than 10 % of the median, or the second half of the samples
    moved by more than that, or the middle 80 % of the samples span more than 30 % of it. The last rule catches two
    modes: small copies over the host take 12 or 21 us on two H200, and the mode with more samples gives a tight
    interval. outliers: samples beyond Tukey's outer fences; they are counted and stay in every figure.
    """
    ordered = sorted(samples_us)
    count, median = len(ordered), statistics.median(ordered)
    draw = random.Random(count)
    medians = sorted(statistics.median(draw.choices(ordered, k=count)) for _ in range(400))
    low, high = medians[10], medians[389]
    half = count // 2
    drift = abs(statistics.median(samples_us[:half]) - statistics.median(samples_us[half:]))
    figures = {
        "time_us": median,
        "p95_us": ordered[min(count - 1, int(0.95 * count))],
        "p99_us": ordered[min(count - 1, int(0.99 * count))],
        "ci_low_us": low,
        "ci_high_us": high,
        "cv": statistics.pstdev(ordered) / statistics.fmean(ordered),
    }
    lower, upper = ordered[count // 4], ordered[3 * count // 4]
    far = FENCE * (upper - lower)
    outliers = sum(not lower - far <= us <= upper + far for us in ordered)
    spread = ordered[int(0.9 * count)] - ordered[int(0.1 * count)]
    unstable = max(high - low, drift) > 0.1 * median or spread > 0.3 * median
    counts = {"samples": count, "outliers": outliers, "unstable": unstable}
    return {**{k: round(v, 4) for k, v in figures.items()}, **counts}


def row_of(path, source, destination, size, **more):
    ends = {"source": str(source), "destination": str(destination)}
    return {"path": path, **ends, "size_bytes": size, **more}


def report(row, timing, method, samples_us, flows=1):
    """flows: the number of copies of size_bytes in one time. at_s: its moment on the clock of the telemetry's lines."""
    row = {**row, **MARKS, "timing": timing, "method": method, "at_s": elapsed_s()}
    row.update(summary([max(s, 1e-3) for s in samples_us]))
    if row["size_bytes"]:
        row["gb_per_s"] = round(flows * row["size_bytes"] / row["time_us"] / 1e3, 4)
    say(**row)
