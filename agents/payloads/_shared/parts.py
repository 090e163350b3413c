"""A measurement in parts, each in its own process with a fresh torch."""

import functools
import time

from device_time import WARM_UP
from lines import Refusal, lost, say
from machine import device_of, header, load_torch
from processes import ENOUGH, GO_ON, PART_SECONDS, REFUSED, run_all

MARGIN_SECONDS = 5


def add_only(ask, parts):
    ask.add_argument("--only", default="", help=f"parts, of {','.join(parts)}")


def chosen_of(only, parts):
    """The keys of the parts to run, in order. Raises Refusal when there are none."""
    names = [part for part in parts if part in (only or ",".join(parts)).split(",")]
    if not names:
        raise Refusal(f"{only} names no part", f"give --only {','.join(parts)}")
    return names


class Parts:
    """parts: key -> (name, measure(torch, chosen, until)). measure prints rows until about `until` and returns GO_ON,
    or ENOUGH when the later parts have nothing to measure. on_cpu(torch, chosen) replaces all of them where there is
    no GPU. chosen.parts: the keys to run."""

    def __init__(self, schema, parts, on_cpu):
        self.schema, self.parts, self.on_cpu = schema, parts, on_cpu

    def run(self, chosen, argv, deadline):
        seconds = max(PART_SECONDS, chosen.limit / len(chosen.parts))
        tasks = [(self.parts[key][0], functools.partial(self.one, key, chosen, argv, seconds)) for key in chosen.parts]
        return run_all(tasks, deadline - time.monotonic())

    def one(self, key, chosen, argv, seconds):
        """Runs one part in its own process. Returns the exit code; an error is one line."""
        (name, measure), first = self.parts[key], key == chosen.parts[0]
        until = time.monotonic() + seconds - MARGIN_SECONDS
        try:
            torch = load_torch()
            device = device_of(torch, chosen)
            if first:
                header(torch, device, argv, self.schema, warm_up=WARM_UP)
            if device == "cpu":
                self.on_cpu(torch, chosen)
                return ENOUGH
            return measure(torch, chosen, until)
        except Refusal as refusal:
            if first:
                say(**refusal.line)
                return REFUSED
            lost(name, refusal)
        except Exception as error:  # a process's last line of defence: a line, never a traceback
            lost(name, error)
        return GO_ON
