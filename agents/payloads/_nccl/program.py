"""The common parts of programs that sum over all GPUs: options, a first look, and the frame."""

import argparse
import functools
import os
import tempfile
import time

import startup
from lines import Refusal, say
from machine import device_of, header, load_torch
from processes import answer_of
from rank import WIDTHS
from sizes import sizes_of

LOOK_SECONDS = 90


def option_parser(about, limit, row_seconds, stall_seconds):
    """A parser with the common options; times in seconds."""
    ask = argparse.ArgumentParser(description=about)
    ask.add_argument("--sizes", default="", help="bytes or 12K,4M (1024)")
    ask.add_argument("--hidden", type=int, default=0, help="adds hidden x batch x bytes of the type")
    ask.add_argument("--batch", default="1", help="with --hidden: tokens in a step, as in 1,64")
    ask.add_argument("--dtype", choices=tuple(WIDTHS), default="bf16")
    ask.add_argument("--gpus", type=int, default=0, help="the first so many; default all (2 on a CPU)")
    ask.add_argument("--row-seconds", type=float, default=row_seconds, help="time for one row")
    ask.add_argument("--stall-seconds", type=float, default=stall_seconds, help="then an arm hangs")
    startup.add_options(ask, limit)
    return ask


def message_sizes(chosen, ladder):
    """Whole elements, each size once and in order."""
    width = WIDTHS[chosen.dtype]
    sizes = sizes_of(chosen.sizes, ladder, chosen.hidden, chosen.batch, width)
    return sorted({max(width, size - size % width) for size in sizes})


def look(chosen, argv, schema):
    """Prints the header. Returns the kind of device and the number of devices."""
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        header(torch, device, argv, schema)
    except Refusal as refusal:
        return refusal.line
    return {"device": device, "gpus": torch.cuda.device_count() if device == "cuda" else 2}


def find_ranks(chosen, argv, schema, deadline):
    """Sets chosen.device and chosen.ranks. Returns the exit code when nothing can be measured, else None."""
    until = min(deadline, time.monotonic() + LOOK_SECONDS)
    code, answer = answer_of(functools.partial(look, chosen, argv, schema), until)
    if not answer or "error" in answer:
        why = "torch did not come back" if code is None else f"torch's process ended with {code}"
        say(**(answer or {"error": why, "fix": "look at nvidia-smi and at the kernel log"}))
        return 2
    chosen.device = answer["device"]
    chosen.ranks = chosen.gpus or answer["gpus"]
    if chosen.device == "cuda":
        chosen.ranks = min(chosen.ranks, answer["gpus"])
    else:
        say(note="no GPU: gloo in the CPU's memory, which says nothing of any GPU")
    if chosen.simulate_fault:
        say(note=f"simulated: {chosen.simulate_fault}", simulated=True)
    if chosen.ranks < 2:
        say(verdict="unusable", why="one GPU: there is nothing to sum over")
        return 0
    return None


def leave(options, measure):
    """Runs the program and ends this process. options(argv) -> chosen; measure(chosen, argv, deadline) -> exit code."""
    startup.leave(options, functools.partial(in_folder, measure))


def in_folder(measure, chosen, argv, deadline):
    mark = os.environ.get("PEERPATH_RUN", "")  # the sweep finds the rest of a killed run by it
    with tempfile.TemporaryDirectory(prefix=f"peerpath.{mark}") as chosen.folder:
        return measure(chosen, argv, deadline)
