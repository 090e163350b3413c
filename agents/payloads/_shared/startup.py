"""How every program starts and ends: its arguments, who uses the GPUs, telemetry, and what is left."""

import os
import signal
import sys
import time

from lines import Refusal, say
from machine import gpu_nodes, holders, memory_used, refuse_when_busy, say_what_is_left
from processes import SIGNALS, STOPPED, Stopped, end_by_signal
from telemetry import EVERY_SECONDS, sampled


def add_options(ask, limit):
    """What all programs understand. limit: seconds."""
    ask.add_argument("--limit", type=float, default=limit, help="seconds until it is killed")
    ask.add_argument("--device", choices=("auto", "cpu"), default="auto")
    ask.add_argument("--force", action="store_true", help="measure beside other GPU processes")
    ask.add_argument(
        "--telemetry-seconds",
        type=float,
        default=EVERY_SECONDS,
        help="between two looks at power, clocks and links; 0: none",
    )


def run(argv, options, measure):
    """The exit code. options(argv) gives the arguments; measure(chosen, argv, deadline) prints the
    header and the rows and gives the exit code, 0 when what can be measured was."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as nvidia-smi counts
    try:
        chosen = options(argv)
        deadline = time.monotonic() + chosen.limit
        code = watch(chosen, lambda: measure(chosen, argv, deadline))
    except Refusal as refusal:
        say(**refusal.line)
        return 2
    except Stopped as stopped:
        say(stopped=str(stopped))
        return STOPPED
    if code == 0:
        say(end=True)
    return code


def watch(chosen, measure):
    """Measures, with the GPUs looked at before, meanwhile and afterwards."""
    watching = chosen.device != "cpu" and bool(gpu_nodes())
    if watching:
        refuse_when_busy(holders(), chosen.force)
    for number in SIGNALS:
        signal.signal(number, end_by_signal)
    before = memory_used() if watching else {}
    with sampled(chosen.telemetry_seconds if watching else 0):
        code = measure()
    say_what_is_left(before)
    return code


def leave(options, measure):
    """Runs the program and ends this process."""
    try:
        sys.exit(run(sys.argv[1:], options, measure))
    except BrokenPipeError:
        os._exit(5)
