"""The CUDA runtime that torch loaded, called through ctypes."""

import ctypes
import sys
from pathlib import Path

from lines import Refusal

CAPTURE_RELAXED = 2  # the runtime's cudaStreamCaptureModeRelaxed


def raw(handle):
    return ctypes.c_void_p(handle)


def library(name):
    """The library of that name that torch loaded, or one in torch's folders."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    paths = [line.split()[-1] for line in maps if f"/{name}" in line]
    for folder in sys.path:
        paths += map(str, Path(folder).glob(f"nvidia/*/lib/{name}.so.*"))
    if not paths:
        fix = f"use the torch wheels from pytorch.org, which bring {name}.so"
        raise Refusal(f"{name} of this torch was not found", fix)
    return ctypes.CDLL(paths[0])


class Cuda:
    """Calls into the CUDA runtime that torch loaded; OSError with CUDA's own words when one fails."""

    def __init__(self):
        self.library = library("libcudart")
        self.library.cudaGetErrorString.restype = ctypes.c_char_p

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            self.library.cudaGetLastError()  # or torch's next call raises it again
            raise OSError(f"{name}: {self.library.cudaGetErrorString(code).decode()}")

    def capture(self, action, count, stream):
        """A CUDA graph of `count` copies. A failed capture is ended too and leaves no error."""
        graph, run = ctypes.c_void_p(), ctypes.c_void_p()
        self("cudaStreamBeginCapture", stream, CAPTURE_RELAXED)
        try:
            for _ in range(count):
                action()
        except OSError:
            self.library.cudaStreamEndCapture(stream, ctypes.byref(graph))
            self.library.cudaGetLastError()
            raise
        self("cudaStreamEndCapture", stream, ctypes.byref(graph))
        self("cudaGraphInstantiateWithFlags", ctypes.byref(run), graph, ctypes.c_ulonglong(0))
        self("cudaGraphDestroy", graph)
        return run
