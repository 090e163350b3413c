"""The copies: inside one GPU, to and from the host, and between GPUs."""

import ctypes
import functools
import time

from device_time import NOTHING, Clock, call_times
from gpus import Gpus
from lines import lost, report, row_of, say
from plan import between, representative, swept_sizes
from runtime import raw


class Bench:
    """The rows of one process. until: its end by the monotonic clock."""

    def __init__(self, torch, chosen, until):
        self.torch, self.seconds, self.until = torch, chosen.row_seconds, until
        self.quick = chosen.quick
        self.count = torch.cuda.device_count()
        self.whole, self.swept = between(chosen.pairs, self.count)
        # A process opens only the GPUs it needs: a context on each of eight GPUs takes seconds.
        used = [gpu for pair in (*self.whole, *self.swept) for gpu in pair]
        self.gpus = Gpus(torch, max(used, default=0) + 1, chosen.sizes)
        self.clock = Clock(torch, self.gpus.cuda, self.seconds)
        self.sizes, self.streams = self.gpus.sizes, self.gpus.streams
        self.some_sizes = swept_sizes(self.sizes)

    def row(self, row, gpu, timing, times, flows=1):
        """times() gives the method and its samples. A failing row costs only itself."""
        try:
            self.torch.cuda.set_device(gpu)
            report(row, timing, *times(), flows=flows)
        except (OSError, RuntimeError) as error:
            names = "{path} {source} to {destination}, {size_bytes} bytes".format(**row)
            lost(f"{names}, {timing}", error)

    def both(self, row, gpu, copy, device):
        """One copy, timed on the device by this measure and for a caller who waits for each."""
        stream = self.streams[gpu]
        self.row(row, gpu, "device", lambda: device(copy, stream))
        self.row(row, gpu, "host_sync", lambda: self.clock.calls(copy, stream))

    def controls(self):
        """The controls: a caller's cost of waiting alone and of queueing alone."""
        stream, word = self.streams[0], raw(self.gpus.buffers[0][0].data_ptr())
        args = (word, 0, ctypes.c_size_t(4), raw(stream.cuda_stream))
        launch = functools.partial(self.gpus.cuda, "cudaMemsetAsync", *args)
        self.torch.cuda.set_device(0)
        waits = call_times(NOTHING, stream.synchronize, self.seconds)
        report(row_of("synchronise", 0, 0, 0), "host_sync", "call", waits)
        launches = call_times(launch, NOTHING, self.seconds)
        report(row_of("launch", 0, 0, 0), "host_sync", "call", launches)
        stream.synchronize()

    def inside(self):
        """Every size on the first GPU, and the host links of all others at two sizes."""
        for size in self.gpus.too_large:
            say(note=f"{size} bytes left out: more than a quarter of a GPU's free memory")
        if not self.whole:
            say(note="one GPU: copies inside it and to and from the host only")
        self.controls()
        for size in self.sizes:
            for row, copy in self.of_one(0, size):
                self.both(row, 0, copy, self.clock.graph)
        for gpu in range(1, self.gpus.count):
            for size in self.some_sizes:
                for row, copy in self.of_one(gpu, size):
                    measure = functools.partial(self.clock.graph, copy, self.streams[gpu])
                    self.row(row, gpu, "device", measure)

    def of_one(self, gpu, size):
        """Rows and copies of a GPU alone: inside it, from the host, to the host."""
        first, second = self.gpus.buffers[gpu]
        for path, source, destination, to, what in (
            ("same", gpu, gpu, second, first),
            ("host_to_device", "cpu", gpu, first, self.gpus.pinned),
            ("device_to_host", gpu, "cpu", self.gpus.pinned, first),
        ):
            copy = self.gpus.copy(to, what, size, self.streams[gpu])
            yield row_of(path, source, destination, size), copy

    def staged(self):
        """Copies down to pinned memory on one GPU's stream, then up on the other's."""
        for size in self.sizes:
            for a, b in self.whole[:1]:
                copy = self.staged_copy(a, b, size)
                self.both(row_of("staged", a, b, size), a, copy, self.clock.queued)

    def staged_copy(self, a, b, size):
        down, up = self.streams[a], self.streams[b]
        arrived, done = self.torch.cuda.Event(), self.torch.cuda.Event()
        pinned, buffers = self.gpus.pinned, self.gpus.buffers
        first = self.gpus.copy(pinned, buffers[a][0], size, down)
        second = self.gpus.copy(buffers[b][1], pinned, size, up)

        def copy():
            first()
            arrived.record(down)
            up.wait_event(arrived)
            second()
            done.record(up)
            down.wait_event(done)

        return copy

    def peer(self, access):
        """The runtime's own copy between GPUs, which uses host memory without peer access."""
        whole, swept = self.whole, self.swept
        if access:
            reachable = set(self.gpus.reachable([*whole, *swept]))
            whole, swept = ([p for p in pairs if p in reachable] for pairs in (whole, swept))
            self.gpus.enable([*whole, *swept])
        for size in self.sizes:
            for number, (a, b) in enumerate(whole):
                row = {**row_of("peer", a, b, size), "peer_access": access}
                copy = self.gpus.peer_copy(a, b, size)
                if number == 0 and not self.quick:
                    self.both(row, a, copy, self.clock.queued)
                else:
                    self.one_way(row, a, copy)
            for a, b in () if self.quick else representative(whole):
                self.both_ways(a, b, size, access)
        self.sweep(swept, access)

    def sweep(self, pairs, access):
        """The other pairs at two sizes, as time allows."""
        for number, (a, b) in enumerate(pairs):
            if time.monotonic() > self.until:
                left = ", ".join(f"{a} to {b}" for a, b in pairs[number:])
                lost(f"peer copies with access {'on' if access else 'off'}", f"no time for {left}")
                return
            for size in self.some_sizes:
                row = {**row_of("peer", a, b, size), "peer_access": access}
                self.one_way(row, a, self.gpus.peer_copy(a, b, size))
            if a < b:
                self.both_ways(a, b, self.some_sizes[-1], access)

    def one_way(self, row, gpu, copy):
        queued = functools.partial(self.clock.queued, copy, self.streams[gpu])
        self.row(row, gpu, "device", queued)

    def both_ways(self, a, b, size, access):
        """One copy in each direction at once; the bandwidth counts both."""
        flows = [(self.gpus.peer_copy(a, b, size), self.streams[a]), (self.gpus.peer_copy(b, a, size), self.streams[b])]
        row = {**row_of("peer_both_ways", a, b, size), "peer_access": access}
        self.row(row, a, "device", lambda: self.clock.together(flows), flows=2)


def run_on_cpu(torch, chosen):
    """Copies in this machine's memory: shows that the program runs."""
    say(note="no CUDA device: copies in the CPU's memory, which say nothing of any GPU")
    waits = call_times(NOTHING, NOTHING, 0.05)
    report(row_of("synchronise", "cpu", "cpu", 0), "host_sync", "call", waits)
    seconds = min(chosen.row_seconds, 0.1)
    for size in chosen.sizes:
        row = row_of("same", "cpu", "cpu", size)
        try:
            source, target = (torch.zeros(size, dtype=torch.uint8) for _ in range(2))
        except RuntimeError as error:
            lost(f"{size} bytes", error)
            continue
        copy = functools.partial(ctypes.memmove, target.data_ptr(), source.data_ptr(), size)
        loop = functools.partial(lambda copy: [copy() for _ in range(10)], copy)
        report(row, "device", "queued", [us / 10 for us in call_times(loop, NOTHING, seconds)])
        report(row, "host_sync", "call", call_times(copy, NOTHING, seconds))
