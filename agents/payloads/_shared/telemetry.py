"""Telemetry of the GPUs during a measurement: a separate process samples them a few times a second.

One line names the columns, then each sample is one line. It starts no work on a GPU: the driver answers by itself.
"""

import contextlib
import time

from lines import HEADED, elapsed_s, say
from nvml import COLUMNS, Nvml
from processes import GO_ON, kill, started

EVERY_SECONDS = 0.4


@contextlib.contextmanager
def sampled(every_seconds):
    """Samples at this interval in seconds while the block runs; 0: never. The process dies with this one."""
    child = started(lambda: watch(every_seconds)) if every_seconds > 0 else None
    try:
        yield
    finally:
        if child:
            kill(child)


def watch(every_seconds):
    """Samples from the header on, until it is killed. Without NVML it prints a note and ends."""
    while not HEADED[0]:
        time.sleep(0.02)
    try:
        nvml = Nvml()
    except (OSError, AttributeError) as error:
        say(note=f"no telemetry: {str(error)[:200]}")
        return GO_ON
    say(telemetry=list(COLUMNS), every_s=every_seconds)
    due = time.monotonic()
    while True:
        at_s = elapsed_s()
        say(at_s=at_s, gpus=nvml.sample())
        due = max(due + every_seconds, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
