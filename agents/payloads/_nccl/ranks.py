"""The processes of one arm, one per GPU: their start, their end, and their exchange."""

import contextlib
import ctypes
import json
import mmap
import multiprocessing
import os
import signal
import time

from processes import GO_ON

BROKEN = 6  # exit code of an arm with a failed rank


class Board:
    """A line of rank 0's in shared memory; the watching process can read it even when rank 0 is gone."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 1024)
        self.state = {"doing": "starting", "wrong": 0}
        self.show()

    def show(self, **more):
        self.state = {**self.state, **more, "at": time.monotonic()}
        self.memory[:] = json.dumps(self.state).encode().ljust(len(self.memory))

    def read(self):
        with contextlib.suppress(ValueError):  # rank 0 is writing it
            self.state = json.loads(self.memory[:].decode())
        return self.state


class Links:
    """Exchanges a value of every rank with every rank, in the order of the ranks."""

    def __init__(self, rank, to_others):
        self.rank, self.to_others = rank, to_others

    def all(self, value):
        if self.rank:
            (zero,) = self.to_others
            zero.send(value)
            return zero.recv()
        values = [value, *(other.recv() for other in self.to_others)]
        for other in self.to_others:
            other.send(values)
        return values


def run(count, work):
    """Runs work(rank, links) in a process for each rank. The exit code shows whether all ended well. If one fails,
    the others are killed, because they would wait for it for ever."""
    pipes = [multiprocessing.Pipe() for _ in range(count - 1)]
    children = [begun(rank, pipes, work) for rank in range(count)]
    while children:
        child, status = os.wait()
        children.remove(child)
        if status:
            for other in children:
                os.kill(other, signal.SIGKILL)
            for other in children:
                os.waitpid(other, 0)
            return BROKEN
    return GO_ON


def begun(rank, pipes, work):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        mine = [near for near, _ in pipes] if rank == 0 else [pipes[rank - 1][1]]
        code = work(rank, Links(rank, mine))
    finally:
        os._exit(code)
