"""Times copies inside a GPU, between GPUs and over the host: as the device and as a caller sees them.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. One JSON line a row as soon
as it is measured, first a header, last {"end": true}; between them what the GPUs did meanwhile.

The process that was started only watches. Every part is measured in a process of its own, because peer
access is a state of a whole process, and so that a part that fails, crashes or hangs costs its own rows
alone: it becomes a note. All of them are killed at --limit, when standard input closes, or on a signal.
"""

import argparse
import functools
import time

from copies import Bench, run_on_cpu
from device_time import WARM_UP
from lines import Refusal, lost, say
from machine import device_of, header, load_torch
from processes import ENOUGH, GO_ON, PART_SECONDS, REFUSED, run_all
from sizes import KIB, sizes_of
from startup import add_options, leave

LADDER = [size * KIB for size in (12, 48, 192, 768, 4096, 16384, 65536)]

PARTS = {  # the one most likely to hang last
    "inside": ("copies inside one GPU", Bench.inside),
    "staged": ("copies by hand over the host", Bench.staged),
    "no_peer": ("copies without peer access", lambda bench: bench.peer(False)),
    "peer": ("copies with peer access", lambda bench: bench.peer(True)),
}
MARGIN_SECONDS = 5

OPTIONS = (
    ("--sizes", str, "", "bytes or 12K,4M (1024); default 12K to 64M"),
    ("--hidden", int, 0, "adds hidden x batch x bytes"),
    ("--batch", str, "1", "with --hidden: tokens in a step, as in 1,64"),
    ("--bytes", int, 2, "with --hidden: bytes of an activation"),
    ("--row-seconds", float, 0.12, "time for one row"),
    ("--pairs", str, "auto", "auto, first, all, or 0-1,1-0"),
    ("--only", str, "", f"parts, of {','.join(PARTS)}"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Times copies inside and between GPUs.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    add_options(ask, limit=150.0)
    chosen = ask.parse_args(argv)
    chosen.sizes = sizes_of(chosen.sizes, LADDER, chosen.hidden, chosen.batch, chosen.bytes)
    chosen.parts = [part for part in PARTS if part in (chosen.only or ",".join(PARTS)).split(",")]
    if not chosen.parts:
        raise Refusal(f"{chosen.only} names no part", f"give --only {','.join(PARTS)}")
    return chosen


def measured(part, chosen, argv, seconds):
    """One part, in its own process. Returns the exit code; what goes wrong is one line."""
    (name, measure), first = PARTS[part], part == chosen.parts[0]
    until = time.monotonic() + seconds - MARGIN_SECONDS
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        if first:
            header(torch, device, argv, "peerpath.copy/1", warm_up=WARM_UP)
        if device == "cpu":
            run_on_cpu(torch, chosen)
            return ENOUGH
        bench = Bench(torch, chosen, until)
        measure(bench)
        return GO_ON if bench.whole else ENOUGH
    except Refusal as refusal:
        if first:
            say(**refusal.line)
            return REFUSED
        lost(name, refusal)
    except Exception as error:  # a process's last line of defence: a line, never a traceback
        lost(name, error)
    return GO_ON


def measure(chosen, argv, deadline):
    seconds = max(PART_SECONDS, chosen.limit / len(chosen.parts))
    tasks = [
        (PARTS[part][0], functools.partial(measured, part, chosen, argv, seconds))
        for part in chosen.parts
    ]
    return run_all(tasks, deadline - time.monotonic())


if __name__ == "__main__":
    leave(options, measure)
