"""Times a copy: for a caller and on the device; alone and beside others.

Device time comes from a CUDA graph where one GPU copies. Copies that touch two GPUs are queued instead, behind a
kernel that holds the stream until all are queued: the capture of such a copy failed on two H200 (driver 580.159,
2026).
"""

import functools
import time

from runtime import raw

NOTHING = int  # a call that does nothing
LEAST_SAMPLES, MOST_SAMPLES = 20, 200
MOST_QUEUED = 1200  # copies over all streams in the queue while the device is held
WARM_UP = (
    "a tenth of a second of copies on every GPU before a process's first row; before each row 3 to 5 "
    "single copies and one whole batch, or 5 calls, none of which is in the row"
)
CYCLES_PER_US, MOST_HOLD_CYCLES = 2000, 20_000_000  # about 10 ms


def samples_within(measure, seconds):
    """Samples of one measure: as many as fit into the seconds, within limits."""
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < MOST_SAMPLES:
        samples.append(measure())
        if len(samples) >= LEAST_SAMPLES and time.perf_counter() > end:
            break
    return samples


def call_times(action, finish, seconds):
    """Microseconds of single calls, each with the wait for its end."""

    def call_us():
        start = time.perf_counter_ns()
        action()
        finish()
        return (time.perf_counter_ns() - start) / 1e3

    for _ in range(5):
        call_us()
    return samples_within(call_us, seconds)


class Clock:
    """Times copies on a stream of a GPU. Every timing gives its method and the microseconds of one copy in each
    sample."""

    def __init__(self, torch, cuda, seconds):
        self.torch, self.cuda, self.seconds = torch, cuda, seconds

    def calls(self, copy, stream):
        """One copy after the other, with a wait for each."""
        return "call", call_times(copy, stream.synchronize, self.seconds)

    def elapsed_us(self, queue, stream, hold_cycles=0):
        """Device time of the work that `queue` queues, while the device is held at first."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        if hold_cycles:
            with self.torch.cuda.stream(stream):
                self.torch.cuda._sleep(hold_cycles)
        start.record(stream)
        queue()
        stop.record(stream)
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def once_us(self, copy, stream):
        return max(1.0, min(self.elapsed_us(copy, stream) for _ in range(5)))

    def round_us(self, flows, count=1, hold_cycles=0):
        """Device time until every flow has done `count` copies. flows: (copy, stream), which start at the
        same event."""
        lead = flows[0][1]
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        if hold_cycles:
            with self.torch.cuda.stream(lead):
                self.torch.cuda._sleep(hold_cycles)
        start.record(lead)
        for _, stream in flows[1:]:
            stream.wait_event(start)
        for _ in range(count):
            for copy, _ in flows:
                copy()
        for _, stream in flows[1:]:
            done = self.torch.cuda.Event()
            done.record(stream)
            lead.wait_event(done)
        stop.record(lead)
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def together(self, flows):
        """Copies on several streams at once: the microseconds until each stream has done one."""
        once = max(1.0, min(self.round_us(flows) for _ in range(3)))
        count = max(5, min(200, int(20_000 / once), MOST_QUEUED // len(flows)))
        start = time.perf_counter_ns()
        for _ in range(count):
            for copy, _ in flows:
                copy()
        queueing_us = (time.perf_counter_ns() - start) / 1e3
        for _, stream in flows:
            stream.synchronize()
        hold = min(MOST_HOLD_CYCLES, int(2 * queueing_us * CYCLES_PER_US))
        samples = samples_within(lambda: self.round_us(flows, count, hold) / count, self.seconds)
        return "queued", samples

    def graph(self, copy, stream):
        """Captures the copies once and launches them as a whole. For copies of one GPU only."""
        count = max(4, min(50, int(4000 / self.once_us(copy, stream))))
        try:
            run = self.cuda.capture(copy, count, raw(stream.cuda_stream))
        except (OSError, AttributeError):  # AttributeError: a runtime too old for graphs
            return self.queued(copy, stream)
        launch = functools.partial(self.cuda, "cudaGraphLaunch", run, raw(stream.cuda_stream))
        self.elapsed_us(launch, stream)
        samples = samples_within(lambda: self.elapsed_us(launch, stream) / count, self.seconds)
        self.cuda("cudaGraphExecDestroy", run)
        return "graph", samples

    def queued(self, copy, stream):
        """200 copies in a sample, fewer if that takes over 20 ms. The device is held while the host queues them, so
        that the host's time is not measured."""
        count = max(10, min(200, int(20_000 / self.once_us(copy, stream))))

        def queue():
            for _ in range(count):
                copy()

        start = time.perf_counter_ns()
        queue()
        queueing_us = (time.perf_counter_ns() - start) / 1e3
        stream.synchronize()
        hold = min(MOST_HOLD_CYCLES, int(2 * queueing_us * CYCLES_PER_US))
        return "queued", samples_within(lambda: self.elapsed_us(queue, stream, hold) / count, self.seconds)
