"""The start and end of every program: arguments, users of the GPUs, telemetry, and memory left behind."""

import functools
import os
import signal
import sys
import time

from lines import Refusal, lost, say
from machine import gpu_nodes, holders, memory_used, refuse_when_busy, say_what_is_left
from processes import GO_ON, REFUSED, SIGNALS, STOPPED, Stopped, end_by_signal, run_all
from telemetry import EVERY_SECONDS, sampled


def add_options(ask, limit):
    """Adds the options of all programs. limit: seconds."""
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
    """The exit code. options(argv) gives the arguments; measure(chosen, argv, deadline) prints the header and the
    rows and returns the exit code, 0 when everything possible was measured."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as nvidia-smi counts

    def work(chosen):
        deadline = time.monotonic() + chosen.limit
        return watch(chosen, lambda: measure(chosen, argv, deadline))

    return framed(argv, options, work)


def run_on_engine(argv, options, name, work, on_stop=lambda chosen: None):
    """As run, for a program that asks an engine: work(chosen, argv) prints from one process of its own.
    on_stop(chosen) tidies up when the whole run is stopped."""

    def watched_work(chosen):
        catch_signals()
        try:
            return run_all([(name, functools.partial(attempt, name, work, chosen, argv))], chosen.limit)
        except Stopped:
            on_stop(chosen)
            raise

    return framed(argv, options, watched_work)


def attempt(name, work, chosen, argv):
    """The exit code of work; an error becomes a note."""
    try:
        work(chosen, argv)
    except Refusal as refusal:
        say(**refusal.line)
        return REFUSED
    except Exception as error:  # a process's last line of defence: a line, never a traceback
        lost(name, error)
    return GO_ON


def framed(argv, options, work):
    """The exit code of work(chosen), after the line that says how the run ended."""
    try:
        code = work(options(argv))
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
    """Measures, and checks the GPUs before, during and after it."""
    watching = chosen.device != "cpu" and bool(gpu_nodes())
    if watching:
        refuse_when_busy(holders(), chosen.force)
    catch_signals()
    before = memory_used() if watching else {}
    with sampled(chosen.telemetry_seconds if watching else 0):
        code = measure()
    say_what_is_left(before)
    return code


def catch_signals():
    for number in SIGNALS:
        signal.signal(number, end_by_signal)


def leave(options, measure):
    """Runs the program and ends this process."""
    leave_with(functools.partial(run, options=options, measure=measure))


def leave_with(main):
    """Ends this process with the exit code of main(arguments)."""
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os._exit(5)
