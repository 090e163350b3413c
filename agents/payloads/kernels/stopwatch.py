"""Times work: on the device in a queue or a CUDA graph, and for a caller.

On a CPU there is no device to time, only the caller.
"""

import ctypes
import time

from lines import say, summary
from runtime import Cuda

LEAST_SAMPLES, MOST_SAMPLES = 20, 200
SAMPLE_US = 5000  # device time of one sample that repeats the work
CYCLES_PER_US, LEAST_HOLD_US, MOST_HOLD_US = 2000, 500, 10_000
WARM_SECONDS = 0.2
WARM_UP = (
    "a fifth of a second of a kernel before a process's first row; before each row five samples that are not in it"
)
L2_CACHE_SIZE = 38  # the runtime's cudaDevAttrL2CacheSize


def tell(row, timing, method, samples_us, moved_bytes=0):
    """Prints one row; with moved_bytes also its rate."""
    figures = summary([max(us, 1e-3) for us in samples_us])
    if moved_bytes:
        figures["gb_per_s"] = round(moved_bytes / figures["time_us"] / 1e3, 4)
    say(**row, timing=timing, method=method, **figures)


class Stopwatch:
    """Times torch's work on one stream of a GPU, which becomes the current one. gpu None: on the CPU."""

    def __init__(self, torch, gpu, seconds):
        self.torch, self.gpu, self.seconds = torch, gpu, seconds
        if gpu is not None:
            torch.cuda.set_device(gpu)
            self.stream = torch.cuda.Stream()
            torch.cuda.set_stream(self.stream)
            self.warm()

    def warm(self):
        """Runs kernels until the clocks have risen."""
        until = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < until:
            self.torch.cuda._sleep(MOST_HOLD_US * CYCLES_PER_US)
            self.wait()

    def wait(self):
        if self.gpu is not None:
            self.stream.synchronize()

    def samples_of(self, measure):
        """As many samples as fit into the seconds, within limits, after five that do not count."""
        for _ in range(5):
            measure()
        samples, end = [], time.perf_counter() + self.seconds
        while len(samples) < MOST_SAMPLES:
            samples.append(measure())
            if len(samples) >= LEAST_SAMPLES and time.perf_counter() > end:
                break
        return samples

    def call_us(self, action):
        """Microseconds of one call with the wait for its end."""
        start = time.perf_counter_ns()
        action()
        self.wait()
        return (time.perf_counter_ns() - start) / 1e3

    def queueing_us(self, action, count):
        """The host's microseconds to queue one of `count` actions, without a wait."""
        start = time.perf_counter_ns()
        for _ in range(count):
            action()
        spent_us = (time.perf_counter_ns() - start) / 1e3
        self.wait()
        return spent_us / count

    def elapsed_us(self, queue, hold_us=LEAST_HOLD_US):
        """Device time of the work that `queue` queues. The device is held until all of it is queued, so that the
        host's time is not measured."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(int(min(MOST_HOLD_US, hold_us) * CYCLES_PER_US))
        start.record()
        queue()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def queued(self, action):
        """Device microseconds of one action among many in a queue."""
        once_us = max(1.0, min(self.elapsed_us(action) for _ in range(5)))
        count = max(4, min(200, int(SAMPLE_US / once_us)))

        def queue():
            for _ in range(count):
                action()

        hold_us = LEAST_HOLD_US + 2 * count * self.queueing_us(action, count)
        return self.samples_of(lambda: self.elapsed_us(queue, hold_us) / count)

    def captured(self, actions):
        """A CUDA graph of these actions. They run once before, so that their memory is allocated."""
        for action in actions:
            action()
        self.wait()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.stream):
            for action in actions:
                action()
        graph.replay()
        self.wait()
        return graph

    def in_graph(self, actions):
        """Device microseconds of one action inside a CUDA graph of them all."""
        graph = self.captured(actions)
        return self.samples_of(lambda: self.elapsed_us(graph.replay) / len(actions))

    def calls(self, action):
        return self.samples_of(lambda: self.call_us(action))

    def l2_bytes(self):
        size = ctypes.c_int()
        Cuda()("cudaDeviceGetAttribute", ctypes.byref(size), L2_CACHE_SIZE, self.gpu)
        return size.value
