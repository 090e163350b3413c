"""Sums values over all GPUs with NCCL, checks every sum, and times it with P2P and without.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. NCCL is called directly, one
process a GPU. Each arm (without P2P as the control, with it, and forced where NCCL takes none by itself)
gets fresh processes, because NCCL chooses its transports once. One JSON line a row, first a header, then
for each arm how it ended and which transport NCCL's log names, a verdict, last {"end": true}.

The process that was started only watches: an arm in which nothing comes back is killed, and that is its
result. All is killed at --limit, when standard input closes, or on a signal.
"""

import argparse
import functools
import os
import signal
import sys
import tempfile
import time

from arms import CONTROL, DEFAULT, FORCED, Arm, verdict
from lines import Refusal, say
from machine import (
    device_of,
    gpu_nodes,
    header,
    load_torch,
    memory_used,
    refuse_when_busy,
    say_what_is_left,
)
from processes import SIGNALS, STOPPED, Stopped, answer_of, end_by_signal
from rank import WIDTHS
from sizes import KIB, sizes_of

LADDER = [4 * KIB * 4**step for step in range(8)]  # 4 KiB to 64 MiB
LOOK_SECONDS = 90
FAULTS = ("wrong", "hang", "control")


def options(argv):
    ask = argparse.ArgumentParser(description="Checks and times all-reduces over all GPUs.")
    ask.add_argument("--sizes", default="", help="bytes or 12K,4M (1024); default 4K to 64M")
    ask.add_argument(
        "--hidden", type=int, default=0, help="adds hidden x batch x bytes of the type"
    )
    ask.add_argument("--batch", default="1", help="with --hidden: tokens in a step, as in 1,64")
    ask.add_argument("--dtype", choices=tuple(WIDTHS), default="bf16")
    ask.add_argument(
        "--gpus", type=int, default=0, help="the first so many; default all (2 on a CPU)"
    )
    ask.add_argument("--row-seconds", type=float, default=0.25, help="time for one row")
    ask.add_argument("--stall-seconds", type=float, default=30.0, help="then an arm hangs")
    ask.add_argument("--limit", type=float, default=280.0, help="seconds until it is killed")
    ask.add_argument("--device", choices=("auto", "cpu"), default="auto")
    ask.add_argument("--force", action="store_true", help="measure beside other GPU processes")
    ask.add_argument("--simulate-fault", choices=FAULTS, default="", help="to see that it is found")
    chosen = ask.parse_args(argv)
    width = WIDTHS[chosen.dtype]
    found = sizes_of(chosen.sizes, LADDER, chosen.hidden, chosen.batch, width)
    chosen.sizes = sorted({max(width, size - size % width) for size in found})
    return chosen


def look(chosen, argv):
    """Prints the header, and answers with the kind of device and how many there are."""
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        header(torch, device, argv, "peerpath.allreduce/1")
    except Refusal as refusal:
        return refusal.line
    return {"device": device, "gpus": torch.cuda.device_count() if device == "cuda" else 2}


def measure(chosen, argv, deadline):
    until = min(deadline, time.monotonic() + LOOK_SECONDS)
    code, found = answer_of(functools.partial(look, chosen, argv), until)
    if not found or "error" in found:
        why = "torch did not come back" if code is None else f"torch's process ended with {code}"
        say(**(found or {"error": why, "fix": "look at nvidia-smi and at the kernel log"}))
        return 2
    chosen.device = found["device"]
    chosen.ranks = chosen.gpus or found["gpus"]
    if chosen.device == "cuda":
        chosen.ranks = min(chosen.ranks, found["gpus"])
    else:
        say(note="no GPU: gloo in the CPU's memory, which says nothing of any GPU")
    if chosen.simulate_fault:
        say(note=f"simulated: {chosen.simulate_fault}", simulated=True)
    if chosen.ranks < 2:
        say(verdict="unusable", why="one GPU: there is nothing to sum over")
        return 0
    judge(chosen, deadline)
    return 0


def judge(chosen, deadline):
    arms = {}
    for name in (CONTROL, DEFAULT, FORCED):
        if name == FORCED and not takes_no_p2p(chosen, arms[DEFAULT]):
            break
        arms[name] = Arm(chosen, name).run(deadline)
        if time.monotonic() >= deadline:
            raise Stopped("the time limit was reached")
        say(**arms[name].line())
    word, why = verdict(arms)
    say(verdict=word, why=why)


def takes_no_p2p(chosen, arm):
    return (
        chosen.device == "cuda" and arm.outcome == "right" and arm.transport[:3] in {"SHM", "NET"}
    )


def main(argv):
    try:
        chosen = options(argv)
        deadline = time.monotonic() + chosen.limit
        watching = chosen.device == "auto" and gpu_nodes()
        if watching and not chosen.force:
            refuse_when_busy()
        for number in SIGNALS:
            signal.signal(number, end_by_signal)
        before = memory_used() if watching else {}
        mark = os.environ.get("PEERPATH_RUN", "")  # what is left of a killed run is found by it
        with tempfile.TemporaryDirectory(prefix=f"peerpath.{mark}") as chosen.folder:
            code = measure(chosen, argv, deadline)
        if before:
            say_what_is_left(before)
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
