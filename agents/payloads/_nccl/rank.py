"""The work of one rank: connect; for every size sum and check values, measure, and check again."""

import time

from clock import IN_GRAPH, Clock
from lines import Refusal, lost, report, say
from machine import load_torch
from nccl import Gloo, Nccl
from processes import GO_ON, REFUSED
from runtime import Cuda
from values import Values

WIDTHS = {"bf16": 2, "fp32": 4}
SHARE_OF_FREE = 16  # a buffer and the memory to check it


class Rank:
    """rank 0 reports for all ranks: rows on standard output, progress on the board."""

    def __init__(self, attempt, rank, links):
        self.attempt, self.chosen, self.board = attempt, attempt.chosen, attempt.board
        self.rank, self.links = rank, links

    def work(self):
        try:
            self.torch = load_torch()
            self.connect()
            for number, size in enumerate(self.sizes):
                self.measure(size, number)
            self.show(doing="closing")
            self.comm.close()
        except Refusal as refusal:
            if self.rank == 0:
                lost(self.attempt.name, refusal)
            return REFUSED
        except Exception as error:  # a process's last line of defence: a line, never a traceback
            lost(f"{self.attempt.name}, rank {self.rank}", error)
            return 1
        return GO_ON

    def show(self, **more):
        if self.rank == 0:
            self.board.show(**more)

    def connect(self):
        torch, chosen = self.torch, self.chosen
        self.dtype = torch.bfloat16 if chosen.dtype == "bf16" else torch.float32
        self.device = "cpu"
        cuda = free = None
        if chosen.device == "cuda":
            torch.cuda.set_device(self.rank)
            self.device = f"cuda:{self.rank}"
            free = min(self.links.all(torch.cuda.mem_get_info()[0]))
            cuda = Cuda()
        self.sizes = [s for s in chosen.sizes if free is None or s * SHARE_OF_FREE <= free]
        if not self.sizes:
            raise Refusal("no size fits in the GPUs' free memory", "stop what fills them")
        for size in chosen.sizes[len(self.sizes) :] if self.rank == 0 else ():
            say(note=f"{size} bytes left out: too large for the GPUs' free memory")
        self.show(doing="connecting")
        if cuda:
            self.comm = Nccl(torch, self.rank, self.links, chosen.dtype)
        else:
            meeting = f"{chosen.folder}/{self.attempt.name}.gloo"
            self.comm = Gloo(torch, self.rank, chosen.ranks, meeting)
        self.show(library=self.comm.version())
        word = torch.zeros(4, dtype=self.dtype, device=self.device)
        self.clock = Clock(torch, cuda, self.comm, self.links, chosen.row_seconds, word)
        largest = self.sizes[-1] // WIDTHS[chosen.dtype]
        self.values = Values(torch, largest, chosen.ranks, self.device)
        self.buffer = torch.zeros(largest, dtype=self.dtype, device=self.device)
        if self.attempt.fault == "slow":
            self.comm.reduce = slowed(self.comm.reduce, torch.zeros_like(self.buffer))

    def measure(self, size, number):
        self.show(doing=f"{size} bytes")
        buffer = self.buffer[: size // WIDTHS[self.chosen.dtype]]
        second = number == min(1, len(self.sizes) - 1)
        wrong = self.checked(buffer, lambda: self.comm.reduce(buffer), fault=second)
        buffer.zero_()  # sums of zeros stay zero, however often
        cuda = self.chosen.device == "cuda"
        if cuda:
            wrong += self.on_the_device(buffer, size, wrong)
        if not cuda or self.chosen.all_ways:
            self.called(buffer, size, wrong)

    def called(self, buffer, size, wrong):
        self.settle()
        eager = self.clock.eager(buffer)
        again = self.checked(buffer, lambda: self.comm.reduce(buffer))
        self.row(size, "call", "host_sync", eager, wrong + again)

    def on_the_device(self, buffer, size, wrong):
        """The number of wrong elements after a graph's 20 sums."""
        graph = self.clock.captured(buffer)
        try:
            more = 0
            if self.values.exact(IN_GRAPH):
                more = self.checked(buffer, lambda: self.clock.launch(graph), IN_GRAPH)
                buffer.zero_()
            self.settle()
            samples = self.clock.graph(graph)
            self.row(size, "graph", "device", samples, wrong + more)
            if self.chosen.all_ways:
                self.row(size, "queued", "device", self.clock.queued(buffer), wrong)
            return more
        finally:
            self.comm.wait()
            # Destroying a communicator hangs while a graph of it exists.
            self.clock.cuda("cudaGraphExecDestroy", graph)

    def checked(self, buffer, reduce, times=1, fault=False):
        """The number of wrong elements on all ranks. fault: whether a simulated fault belongs here."""
        self.values.fill(buffer, self.rank)
        self.settle()
        if fault and self.rank == 1 and self.attempt.fault == "hang":
            time.sleep(3600)
        reduce()
        self.comm.wait()
        if fault and self.rank == 1 and self.attempt.fault == "wrong":
            buffer[:1] += 1
        wrong_elements = sum(self.links.all(self.values.wrong(buffer, times)))
        self.show(wrong=self.board.state["wrong"] + wrong_elements)
        return wrong_elements

    def settle(self):
        """Waits for torch, which writes on its own stream: NCCL's must not start before."""
        if self.chosen.device == "cuda":
            self.torch.cuda.synchronize()

    def row(self, size, method, timing, samples, wrong):
        every = self.links.all(samples)
        if self.rank == 0:
            slowest = [max(of_one) for of_one in zip(*every)]  # noqa: B905 (Python 3.8)
            what = {**self.attempt.label, "size_bytes": size, "ranks": self.chosen.ranks}
            what.update(dtype=self.chosen.dtype, in_place=True, wrong=wrong)
            report(what, timing, method, slowest)
            self.show(rows=self.board.state.get("rows", 0) + 1)


def slowed(reduce, scratch):
    """A simulated slow arm: every sum comes with ten more."""

    def slow(buffer):
        for _ in range(10):
            reduce(scratch[: buffer.numel()])
        reduce(buffer)

    return slow
