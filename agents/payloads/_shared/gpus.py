"""Buffers and streams of the GPUs, and the CUDA runtime's copies between them."""

import ctypes
import functools
import time

from lines import Refusal, say
from runtime import Cuda, raw

MEMCPY_DEFAULT = 4  # the runtime's cudaMemcpyDefault: the addresses decide
BUFFERS = 2
WARM_SECONDS = 0.1


class Gpus:
    """Two buffers of the largest size on each GPU, pinned memory, and a stream each. sizes: those at which the two
    and `more` buffers fill at most half of the free memory. Raises Refusal when there is none."""

    def __init__(self, torch, count, sizes, more=0):
        self.torch, self.cuda, self.count = torch, Cuda(), count
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in range(count))
        self.sizes = [size for size in sizes if 2 * (BUFFERS + more) * size <= free]
        self.too_large = sizes[len(self.sizes) :]
        if not self.sizes:
            raise Refusal("no size fits in the GPUs' free memory", "stop what fills them")
        new = functools.partial(torch.zeros, self.sizes[-1], dtype=torch.uint8)
        self.buffers = [[new(device=f"cuda:{gpu}") for _ in range(BUFFERS)] for gpu in range(count)]
        self.pinned = new(pin_memory=True)
        self.streams = [torch.cuda.Stream(gpu) for gpu in range(count)]
        for gpu in range(count):  # torch wrote on its own streams
            torch.cuda.synchronize(gpu)
        self.warm()

    def warm(self):
        """Works for a while, because clocks rise with work."""
        end = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < end:
            for gpu, (first, second) in enumerate(self.buffers):
                self.copy(second, first, self.sizes[-1], self.streams[gpu])()
            for stream in self.streams:
                stream.synchronize()

    def copy(self, target, source, size, stream):
        """A call that queues one copy."""
        to, what = raw(target.data_ptr()), raw(source.data_ptr())
        args = (to, what, ctypes.c_size_t(size), MEMCPY_DEFAULT, raw(stream.cuda_stream))
        return functools.partial(self.cuda, "cudaMemcpyAsync", *args)

    def peer_copy(self, a, b, size, stream=None, target=None):
        target = self.buffers[b][1] if target is None else target
        to, what = raw(target.data_ptr()), raw(self.buffers[a][0].data_ptr())
        stream = raw((stream or self.streams[a]).cuda_stream)
        args = (to, b, what, a, ctypes.c_size_t(size), stream)
        return functools.partial(self.cuda, "cudaMemcpyPeerAsync", *args)

    def reachable(self, pairs):
        """The ordered pairs with peer access by the driver; a note names the others."""
        reachable = [pair for pair in pairs if self.torch.cuda.can_device_access_peer(*pair)]
        refused = [f"{a} to {b}" for a, b in pairs if (a, b) not in reachable]
        if refused and not reachable:
            say(note="the driver gives no peer access between these GPUs: none to measure")
        elif refused:
            say(note=f"no peer access to measure: {', '.join(refused)}")
        return reachable

    def enable(self, pairs):
        """Enables peer access both ways, for this whole process."""
        for a, b in sorted({*pairs, *((b, a) for a, b in pairs)}):
            self.torch.cuda.set_device(a)
            self.cuda("cudaDeviceEnablePeerAccess", b, 0)
