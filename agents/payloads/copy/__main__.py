"""Times copies inside a GPU, between GPUs and over the host: as the device and as a caller sees them.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. One JSON line a row as soon
as it is measured, first a header, last {"end": true}.

The process that was started only watches. Every part is measured in a process of its own, because peer
access is a state of a whole process, and so that a part that fails, crashes or hangs costs its own rows
alone: it becomes a note. All of them are killed at --limit, when standard input closes, or on a signal.
"""

import argparse
import functools
import os
import signal
import sys

from copies import Bench, run_on_cpu
from lines import Refusal, lost, say
from machine import device_of, gpu_nodes, header, load_torch, refuse_when_busy
from processes import ENOUGH, GO_ON, REFUSED, SIGNALS, STOPPED, Stopped, end_by_signal, run_all
from sizes import KIB, sizes_of

LADDER = [12 * KIB, 48 * KIB, 192 * KIB, 768 * KIB, 4096 * KIB, 16384 * KIB]

PARTS = (  # the one most likely to hang last
    ("copies inside one GPU", Bench.inside),
    ("copies by hand over the host", Bench.staged),
    ("copies without peer access", lambda bench: bench.peer(False)),
    ("copies with peer access", lambda bench: bench.peer(True)),
)

OPTIONS = (
    ("--sizes", str, "", "bytes or 12K,4M (1024); default 12K to 16M"),
    ("--hidden", int, 0, "adds hidden x batch x bytes"),
    ("--batch", str, "1", "with --hidden: tokens in a step, as in 1,64"),
    ("--bytes", int, 2, "with --hidden: bytes of an activation"),
    ("--row-seconds", float, 0.0, "time for one row"),
    ("--limit", float, 150.0, "seconds until it is killed"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Times copies inside and between GPUs.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--pairs", choices=("first", "all"), default="first")
    ask.add_argument("--device", choices=("auto", "cpu"), default="auto")
    ask.add_argument("--force", action="store_true", help="measure beside other GPU processes")
    chosen = ask.parse_args(argv)
    chosen.row_seconds = chosen.row_seconds or (0.4 if chosen.pairs == "first" else 0.1)
    chosen.sizes = sizes_of(chosen.sizes, LADDER, chosen.hidden, chosen.batch, chosen.bytes)
    return chosen


def measured(index, chosen, argv):
    """One part, in its own process. Returns the exit code; what goes wrong is one line."""
    name, measure = PARTS[index]
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        if index == 0:
            header(torch, device, argv, "peerpath.copy/1")
        if device == "cpu":
            run_on_cpu(torch, chosen)
            return ENOUGH
        bench = Bench(torch, chosen)
        measure(bench)
        return GO_ON if bench.pairs else ENOUGH
    except Refusal as refusal:
        if index == 0:
            say(**refusal.line)
            return REFUSED
        lost(name, refusal)
    except Exception as error:  # a process's last line of defence: a line, never a traceback
        lost(name, error)
    return GO_ON


def main(argv):
    try:
        chosen = options(argv)
        if chosen.device == "auto" and gpu_nodes() and not chosen.force:
            refuse_when_busy()
        for number in SIGNALS:
            signal.signal(number, end_by_signal)
        tasks = [
            (name, functools.partial(measured, index, chosen, argv))
            for index, (name, _) in enumerate(PARTS)
        ]
        code = run_all(tasks, chosen.limit)
    except Refusal as refusal:
        say(**refusal.line)
        return 2
    except Stopped as stopped:
        say(stopped=str(stopped))
        return STOPPED
    if code == 0:
        say(end=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os._exit(5)
