"""GPUs simulated in this machine's memory: they show that the program runs and finds faults."""

import mmap
import os
import time


class MemoryDriver:
    """count GPUs that all reach each other."""

    def __init__(self, count):
        self.count = count

    def gpus(self):
        return [("memory of the CPU", f"{index}") for index in range(self.count)]

    def reachable(self, _a, _b):
        return True


class MemoryGpu:
    """fault: "hang" or "failed", whenever it writes to a peer."""

    def __init__(self, fault=""):
        self.fault, self.files = fault, {}

    def reach(self, peer):
        pass

    def prepare(self, method):
        pass

    def allocate(self, size):
        file = os.memfd_create("gpu")
        os.ftruncate(file, size)
        buffer = mmap.mmap(file, size)
        self.files[id(buffer)] = file
        return buffer

    def handle(self, buffer):
        return f"/proc/{os.getpid()}/fd/{self.files[id(buffer)]}"

    def opened(self, handle, size):
        file = os.open(handle, os.O_RDWR)
        return mmap.mmap(file, size)

    def fill(self, buffer, value, size):
        buffer[:size] = bytes([value]) * size

    def upload(self, buffer, data):
        buffer[: len(data)] = data

    def read(self, buffer, size):
        return bytearray(buffer[:size])

    def write(self, _method, target, source, size):
        if self.fault == "hang":
            time.sleep(3600)
        if self.fault == "failed":
            raise OSError("an illegal memory access was encountered (simulated)")
        target[:size] = source[:size]

    def fetch(self, target, source, size):
        target[:size] = source[:size]
