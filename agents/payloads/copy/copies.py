"""What is copied: inside one GPU, to and from the host, and between GPUs."""

import ctypes
import functools

from lines import Refusal, lost, report, row_of, say
from runtime import Cuda, raw
from timing import NOTHING, Clock, call_times

MEMCPY_DEFAULT = 4  # the runtime's cudaMemcpyDefault: it tells from the addresses


class Bench:
    """Buffers and streams of the GPUs, and the rows they give."""

    def __init__(self, torch, chosen):
        self.torch, self.cuda, self.seconds = torch, Cuda(), chosen.row_seconds
        self.clock = Clock(torch, self.cuda, self.seconds)
        count = torch.cuda.device_count()
        gpus = range(count if chosen.pairs == "all" else min(count, 2))
        every = [(a, b) for a in gpus for b in gpus if a != b]
        self.pairs = every if chosen.pairs == "all" else every[:1]
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in gpus)
        self.sizes = [size for size in chosen.sizes if size <= free // 4]
        self.too_large = chosen.sizes[len(self.sizes) :]
        if not self.sizes:
            raise Refusal("no size fits in the GPUs' free memory", "stop what fills them")
        new = functools.partial(torch.zeros, self.sizes[-1], dtype=torch.uint8)
        self.buffers = [[new(device=f"cuda:{gpu}") for _ in range(2)] for gpu in gpus]
        self.pinned = new(pin_memory=True)
        self.streams = [torch.cuda.Stream(gpu) for gpu in gpus]

    def both(self, row, gpu, copy, device):
        """One copy, timed by the device in this way and by a caller who waits for each. A copy that
        fails costs its own rows."""
        for timing, times in (("device", device), ("host_sync", self.clock.calls)):
            try:
                self.torch.cuda.set_device(gpu)
                report(row, timing, *times(copy, self.streams[gpu]))
            except (OSError, RuntimeError) as error:
                names = "{path} {source} to {destination}, {size_bytes} bytes".format(**row)
                lost(f"{names}, {timing}", error)

    def copy(self, target, source, size, gpu):
        to, what = raw(target.data_ptr()), raw(source.data_ptr())
        args = (to, what, ctypes.c_size_t(size), MEMCPY_DEFAULT, raw(self.streams[gpu].cuda_stream))
        return functools.partial(self.cuda, "cudaMemcpyAsync", *args)

    def controls(self):
        """What a caller pays for waiting and for queueing alone."""
        stream, word = self.streams[0], raw(self.buffers[0][0].data_ptr())
        args = (word, 0, ctypes.c_size_t(4), raw(stream.cuda_stream))
        launch = functools.partial(self.cuda, "cudaMemsetAsync", *args)
        self.torch.cuda.set_device(0)
        waits = call_times(NOTHING, stream.synchronize, self.seconds)
        report(row_of("synchronise", 0, 0, 0), "host_sync", "call", waits)
        launches = call_times(launch, NOTHING, self.seconds)
        report(row_of("launch", 0, 0, 0), "host_sync", "call", launches)
        stream.synchronize()

    def inside(self):
        for size in self.too_large:
            say(note=f"{size} bytes left out: more than a quarter of a GPU's free memory")
        if not self.pairs:
            say(note="one GPU: copies inside it and to and from the host only")
        self.controls()
        one, two = self.buffers[0]
        for size in self.sizes:
            for path, source, destination, to, what in (
                ("same", 0, 0, two, one),
                ("host_to_device", "cpu", 0, one, self.pinned),
                ("device_to_host", 0, "cpu", self.pinned, one),
            ):
                row, copy = row_of(path, source, destination, size), self.copy(to, what, size, 0)
                self.both(row, 0, copy, self.clock.graph)

    def staged(self):
        """Down to pinned memory on one GPU's stream, then up on the other's."""
        for size in self.sizes:
            for a, b in self.pairs:
                copy = self.staged_copy(a, b, size)
                self.both(row_of("staged", a, b, size), a, copy, self.clock.queued)

    def staged_copy(self, a, b, size):
        down, up = self.streams[a], self.streams[b]
        arrived, done = self.torch.cuda.Event(), self.torch.cuda.Event()
        first = self.copy(self.pinned, self.buffers[a][0], size, a)
        second = self.copy(self.buffers[b][1], self.pinned, size, b)

        def copy():
            first()
            arrived.record(down)
            up.wait_event(arrived)
            second()
            done.record(up)
            down.wait_event(done)

        return copy

    def peer(self, access):
        """The runtime's own copy between GPUs; without peer access it goes over the host."""
        pairs = [pair for pair in self.pairs if not access or self.reachable(*pair)]
        if access:
            for a, b in {*pairs, *((b, a) for a, b in pairs)}:
                self.torch.cuda.set_device(a)
                self.cuda("cudaDeviceEnablePeerAccess", b, 0)
        for size in self.sizes:
            for a, b in pairs:
                copy, row = self.peer_copy(a, b, size), row_of("peer", a, b, size)
                self.both({**row, "peer_access": access}, a, copy, self.clock.queued)

    def peer_copy(self, a, b, size):
        to, what = raw(self.buffers[b][1].data_ptr()), raw(self.buffers[a][0].data_ptr())
        args = (to, b, what, a, ctypes.c_size_t(size), raw(self.streams[a].cuda_stream))
        return functools.partial(self.cuda, "cudaMemcpyPeerAsync", *args)

    def reachable(self, a, b):
        if self.torch.cuda.can_device_access_peer(a, b):
            return True
        say(note=f"GPU {a} cannot reach GPU {b}: no peer access to measure")
        return False


def run_on_cpu(torch, chosen):
    """Copies in this machine's memory: shows that the program runs."""
    say(note="no CUDA device: copies in the CPU's memory, which say nothing of any GPU")
    waits = call_times(NOTHING, NOTHING, 0.05)
    report(row_of("synchronise", "cpu", "cpu", 0), "host_sync", "call", waits)
    seconds = min(chosen.row_seconds, 0.1)
    for size in chosen.sizes:
        one, two = (torch.zeros(size, dtype=torch.uint8) for _ in range(2))
        copy = functools.partial(ctypes.memmove, two.data_ptr(), one.data_ptr(), size)
        loop = functools.partial(lambda copy: [copy() for _ in range(10)], copy)
        row = row_of("same", "cpu", "cpu", size)
        report(row, "device", "queued", [us / 10 for us in call_times(loop, NOTHING, seconds)])
        report(row, "host_sync", "call", call_times(copy, NOTHING, seconds))
