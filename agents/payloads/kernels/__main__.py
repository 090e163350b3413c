"""Times the parts of a decode step on one GPU: memory reads, launches and small matrix products.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. --measure memory: kernels that stream
through each GPU's memory. --measure launch: the cost of launches, waits and graphs, and products of few tokens with a
layer's weights and with experts. It prints each row as a JSON line at once, first a header, last {"end": true}.

The first process only watches. Every part has its own process, so that a part that fails, crashes or hangs costs only
its own rows. All of them are killed at --limit, when standard input closes, or on a signal.
"""

import argparse
import functools
import time

from gemms import Gemms
from launches import measure_launches
from lines import Refusal, lost, say
from machine import device_of, header, load_torch
from processes import GO_ON, Stopped, answer_of, run_all
from startup import add_options, leave
from stopwatch import WARM_UP, Stopwatch
from streams import measure_memory

LOOK_SECONDS = 90
MOST_TOKENS, MOST_EXPERTS, MOST_SIDE = 4096, 4096, 131072

OPTIONS = (
    ("--hidden", int, 6144, "hidden size of the model"),
    ("--intermediate", int, 2048, "rows of a weight on this GPU: the model's over the ranks"),
    ("--experts", int, 32, "experts on this GPU"),
    ("--active", int, 8, "experts that a token goes to"),
    ("--row-seconds", float, 0.1, "time for one row"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Times memory, launches and small products.")
    ask.add_argument("--measure", choices=("memory", "launch"), required=True)
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--batch", default="1,2,4,8,16,32,64", help="tokens in a step")
    ask.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), default="bf16")
    ask.add_argument("--gpus", choices=("first", "all"), default="", help="memory: all")
    add_options(ask, limit=110.0)
    chosen = ask.parse_args(argv)
    chosen.gpus = chosen.gpus or ("all" if chosen.measure == "memory" else "first")
    chosen.batch = batches(chosen.batch)
    sides = (chosen.hidden, chosen.intermediate)
    counts = (chosen.experts, chosen.active)
    if not all(0 < n <= MOST_SIDE for n in sides) or not all(0 < n <= MOST_EXPERTS for n in counts):
        raise Refusal("a size is out of range", f"give 1 to {MOST_SIDE}, experts to {MOST_EXPERTS}")
    return chosen


def batches(text):
    try:
        sizes = sorted({int(word) for word in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or not 0 < sizes[0] <= sizes[-1] <= MOST_TOKENS:
        raise Refusal(f"no batches: {text}", "give --batch 1,8,64")
    return sizes


def look(chosen, argv):
    """Prints the header. Returns the kind of device and the number of devices."""
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        header(torch, device, argv, f"peerpath.{chosen.measure}/1", warm_up=WARM_UP)
    except Refusal as refusal:
        return refusal.line
    return {"device": device, "gpus": torch.cuda.device_count() if device == "cuda" else 0}


def parts(chosen, gpus):
    """(name, measure) for each process."""
    if chosen.measure == "memory":
        return [(f"memory{of(gpu)}", functools.partial(memory, gpu)) for gpu in gpus]
    return [
        (f"{name}{of(gpu)}", functools.partial(measure, gpu))
        for gpu in gpus
        for name, measure in (("launches", launch), ("products", products))
    ]


def of(gpu):
    return "" if gpu is None else f" of GPU {gpu}"


def memory(gpu, torch, chosen):
    measure_memory(torch, gpu, chosen)


def launch(gpu, torch, chosen):
    measure_launches(torch, Stopwatch(torch, gpu, chosen.row_seconds))


def products(gpu, torch, chosen):
    gemms = Gemms(torch, Stopwatch(torch, gpu, chosen.row_seconds), chosen)
    for name, measure in (("products", gemms.dense), ("experts", gemms.grouped)):
        try:
            measure()
        except RuntimeError as error:
            lost(name, error)


def measured(name, measure, chosen):
    """Runs one part in its own process; an error is one line."""
    try:
        measure(load_torch(), chosen)
    except Exception as error:  # a process's last line of defence: a line, never a traceback
        lost(name, error)
    return GO_ON


def run(chosen, argv, deadline):
    until = min(deadline, time.monotonic() + LOOK_SECONDS)
    code, answer = answer_of(functools.partial(look, chosen, argv), until)
    if code is None and until == deadline:
        raise Stopped("the time limit was reached")
    if not answer or "error" in answer:
        why = "torch did not come back" if code is None else f"torch's process ended with {code}"
        say(**(answer or {"error": why, "fix": "look at nvidia-smi and at the kernel log"}))
        return 2
    count = 1 if chosen.gpus == "first" else answer["gpus"]
    if answer["device"] == "cpu":
        say(note="no GPU: this machine's CPU and memory, which say nothing of any GPU")
    gpus = [None] if answer["device"] == "cpu" else list(range(count))
    tasks = [(name, functools.partial(measured, name, measure, chosen)) for name, measure in parts(chosen, gpus)]
    return run_all(tasks, deadline - time.monotonic())


if __name__ == "__main__":
    leave(options, run)
