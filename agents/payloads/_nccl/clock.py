"""Times an all-reduce: on the device in a CUDA graph, queued, and for a caller who waits.

In a graph as in nccl-tests -G: 20 in place on one stream. A program without graphs gets the queued time, where small
all-reduces take as long as the CPU needs to launch them.
"""

import time

from runtime import raw

IN_GRAPH = 20
QUEUED = 50
LEAST_SAMPLES, MOST_SAMPLES = 20, 100
HOLD_CYCLES = 1_000_000  # about 0.5 ms, in which the host queues the work to measure


class Clock:
    """Every method gives one rank's microseconds of one all-reduce in each sample. All ranks take the same number of
    samples; rank 0 decides it."""

    def __init__(self, torch, cuda, comm, links, seconds, word):
        self.torch, self.cuda, self.comm, self.links, self.seconds = (torch, cuda, comm, links, seconds)
        self.word = word  # a few elements, summed only so that the ranks meet

    def agreed(self, number):
        return self.links.all(number)[0]

    def samples(self, measure):
        measure()
        start = time.perf_counter()
        for _ in range(3):
            measure()
        duration_s = max(1e-6, (time.perf_counter() - start) / 3)
        count = self.agreed(max(LEAST_SAMPLES, min(MOST_SAMPLES, int(self.seconds / duration_s))))
        return [measure() for _ in range(count)]

    def call_us(self, buffer):
        start = time.perf_counter_ns()
        self.comm.reduce(buffer)
        self.comm.wait()
        return (time.perf_counter_ns() - start) / 1e3

    def eager(self, buffer):
        for _ in range(5):
            self.call_us(buffer)
        return self.samples(lambda: self.call_us(buffer))

    def elapsed_us(self, queue, hold):
        """Device time of the work that `queue` queues. The ranks meet on the device first, so that none waits for
        another during the measurement."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        if hold:
            with self.torch.cuda.stream(self.comm.stream):
                self.torch.cuda._sleep(HOLD_CYCLES)
        self.comm.reduce(self.word)
        start.record(self.comm.stream)
        queue()
        stop.record(self.comm.stream)
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def queued(self, buffer):
        def queue():
            for _ in range(QUEUED):
                self.comm.reduce(buffer)

        return self.samples(lambda: self.elapsed_us(queue, hold=False) / QUEUED)

    def captured(self, buffer):
        stream = raw(self.comm.stream.cuda_stream)
        return self.cuda.capture(lambda: self.comm.reduce(buffer), IN_GRAPH, stream)

    def launch(self, graph):
        self.cuda("cudaGraphLaunch", graph, raw(self.comm.stream.cuda_stream))

    def graph(self, graph):
        launch_us = self.agreed(self.elapsed_us(lambda: self.launch(graph), hold=True))
        launches = max(1, min(10, int(2000 / launch_us)))

        def queue():
            for _ in range(launches):
                self.launch(graph)

        per = launches * IN_GRAPH
        return self.samples(lambda: self.elapsed_us(queue, hold=True) / per)
