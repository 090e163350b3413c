"""Telemetry of the GPUs during the load: every sample is a line, and its power is stored."""

import threading
import time

from lines import elapsed_s, say
from nvml import COLUMNS, Nvml

EVERY_SECONDS = 0.4
FEWEST = 3  # least samples in a window for a mean


class Power:
    """The power of all GPUs of the machine, whether they serve or not. Without NVML there are no samples and no
    tokens per joule."""

    def __init__(self):
        self.samples = []  # (time.perf_counter, watts of all GPUs together)
        try:
            nvml = Nvml()
        except (OSError, AttributeError) as error:
            say(note=f"no telemetry: {str(error)[:200]}")
            return
        say(telemetry=list(COLUMNS), every_s=EVERY_SECONDS)
        threading.Thread(target=self._watch_power, args=(nvml,), daemon=True).start()

    def _watch_power(self, nvml):
        """Samples until its process ends. The library waits outside the interpreter, so it delays no stream."""
        while True:
            at_s, seen, gpus = elapsed_s(), time.perf_counter(), nvml.sample()
            say(at_s=at_s, gpus=gpus)
            self.add(seen, [row[COLUMNS.index("power_w")] for row in gpus])
            time.sleep(EVERY_SECONDS)

    def add(self, seen, watts):
        """Adds a sample, unless a GPU's power is unknown."""
        if watts and None not in watts:
            self.samples.append((seen, sum(watts)))

    def mean_w(self, first, last):
        """Mean watts of all GPUs together over [first, last]; None with too few samples."""
        inside = [watts for seen, watts in list(self.samples) if first <= seen <= last]
        return sum(inside) / len(inside) if len(inside) >= FEWEST else None
