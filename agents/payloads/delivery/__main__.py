"""Checks on the receiving GPU whether the writes of other GPUs arrive.

Runs on the target by itself: Python 3.8 or newer and the GPU driver, nothing else. For every ordered pair and three
sizes the copy engine and a kernel's stores write a pattern, in one process and to memory of another process (CUDA
IPC). Each time the receiver's own process and context reads its memory back and compares. It prints one JSON line per
check, first a header, last {"end": true}.

The first process only watches. Every pair has its own process; a process without progress is killed, and that is the
pair's result. Everything is killed at --limit, when standard input closes, or on a signal.
"""

import argparse
import functools
import mmap
import os
import time

from lines import Refusal, lost, say
from machine import driver_version, gpu_nodes, program, say_header, smi
from pair import MAPPINGS, Pair, driver_of
from processes import Stopped, answer_of, started, watched
from sizes import KIB, sizes_of
from startup import add_options, leave

SIZES = [12 * KIB, KIB**2, 64 * KIB**2]
LOOK_SECONDS = 60  # for starting CUDA on every GPU
FAULTS = ("mirror", "torn", "hang", "failed")


def options(argv):
    ask = argparse.ArgumentParser(description="Checks on the destination what GPUs write to it.")
    ask.add_argument("--sizes", default="", help="bytes or 12K,4M; default 12K,1M,64M")
    ask.add_argument("--pair-seconds", type=float, default=25.0, help="then a pair hangs")
    ask.add_argument("--gpus", type=int, default=2, help="with --device cpu: how many are played")
    ask.add_argument("--simulate-fault", choices=FAULTS, default="", help="to see that it is found")
    add_options(ask, limit=280.0)
    chosen = ask.parse_args(argv)
    chosen.sizes, chosen.nonce = sizes_of(chosen.sizes, SIZES), os.urandom(8).hex()
    if chosen.device == "auto":
        chosen.device = "cuda" if gpu_nodes() else "cpu"
    if chosen.device == "cuda" and chosen.simulate_fault in {"hang", "failed"}:
        raise Refusal("this fault is for --device cpu alone", "give mirror or torn")
    return chosen


def look(chosen):
    """The GPUs and their reachable pairs, or the error."""
    try:
        driver = driver_of(chosen)
        gpus = list(driver.gpus())
    except Refusal as refusal:
        return refusal.line
    except OSError as error:
        return {"error": str(error), "fix": "look at nvidia-smi and at the kernel log"}
    every = [(a, b) for a in range(len(gpus)) for b in range(len(gpus)) if a != b]
    return {"gpus": gpus, "pairs": [(a, b, driver.reachable(a, b)) for a, b in every]}


def numbers_of(gpus):
    """nvidia-smi's number of each GPU: CUDA counts only the visible ones."""
    rows = [row for row in smi("--query-gpu=index,pci.bus_id") if len(row) == 2]
    by_address = {address[-12:].lower(): index for index, address in rows}
    return [by_address.get(gpu[1][-12:].lower(), str(i)) for i, gpu in enumerate(gpus)]


def header(chosen, gpus, argv):
    environment = {
        "device": chosen.device,
        "driver": driver_version() if chosen.device == "cuda" else "",
        "gpus": ", ".join(name for name, _ in gpus),
        "nonce": chosen.nonce,
        "simulated_fault": chosen.simulate_fault,
        **program(argv),
    }
    say_header("peerpath.delivery/1", environment, argv)
    if chosen.device == "cpu":
        say(note="no GPU: memory of the CPU plays them, which says nothing of any GPU")


def measure(chosen, argv, deadline):
    until = min(deadline, time.monotonic() + LOOK_SECONDS)
    code, answer = answer_of(functools.partial(look, chosen), until)
    if not answer or "error" in answer:
        why = "nothing came back" if code is None else f"its process ended with {code}"
        fix = "look at nvidia-smi and at the kernel log"
        say(**(answer or {"error": f"CUDA does not start: {why}", "fix": fix}))
        return 2
    header(chosen, answer["gpus"], argv)
    names = numbers_of(answer["gpus"])
    if not answer["pairs"]:
        say(note="one GPU: there is no pair to check", lost=True)
    for a, b, reachable in answer["pairs"]:
        pair = Pair(chosen, a, b, names, mmap.mmap(-1, 256))
        if not reachable:
            pair.say("one_process", verdict="unusable", why="the driver gives no peer access")
            continue
        for mapping in MAPPINGS:
            watch(pair, mapping, deadline)
    return 0


def watch(pair, mapping, deadline):
    """Runs one pair's checks in their own process. A hang is a result."""
    until = min(deadline, time.monotonic() + pair.chosen.pair_seconds)
    code = watched(started(functools.partial(pair.measure, mapping)), until)
    what = "{source} to {destination}, {0}".format(mapping, **pair.row)
    if code is None:
        hung = pair.hung() if until < deadline else None
        if until == deadline:
            raise Stopped("the time limit was reached")
        if hung:
            say(**hung)
        else:
            lost(what, f"not finished after {pair.chosen.pair_seconds:g} s, while nothing was written")
    elif code < 0:
        lost(what, f"the process was ended by signal {-code}")
    elif code:
        lost(what, f"the process ended with {code}")


if __name__ == "__main__":
    leave(options, measure)
