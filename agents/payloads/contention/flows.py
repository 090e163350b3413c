"""Copies of a pattern on the GPUs: each with its own stream and target, started together."""

import time

from device_time import Clock
from gpus import Gpus
from lines import lost, report, say
from patterns import between, with_host


class Contention:
    """The rows of one process. until: its end by the monotonic clock."""

    def __init__(self, torch, chosen, until):
        self.torch, self.until = torch, until
        count = torch.cuda.device_count()
        self.count = min(chosen.gpus or count, count)
        # On each GPU a target for every other one, and two for the host.
        self.gpus = Gpus(torch, self.count, chosen.sizes, more=self.count + 1)
        self.clock = Clock(torch, self.gpus.cuda, chosen.row_seconds)
        self.flows = {}

    def host(self):
        for size in self.gpus.too_large:
            say(note=f"{size} bytes left out: too large for the GPUs' free memory")
        if self.count == 1:
            say(note="one GPU: copies from and to the host only, none beside them")
        for size in self.gpus.sizes:
            for alone, together in with_host(self.count):
                self.beside(alone, [together] if self.count > 1 else [], size)

    def peers(self, access):
        patterns = between(self.count)
        if not patterns:
            say(note="one GPU: there is no pair to measure")
            return
        if not access and self.count == 2:
            say(note="two GPUs: many-to-one and one-to-many need a third")
        every = patterns[0][1]
        reachable = self.gpus.reachable(every) if access else every
        if access:
            self.gpus.enable(reachable)
        for size in self.gpus.sizes if reachable else ():
            self.beside(("alone", [(0, 1)]), patterns, size, access, set(reachable))

    def beside(self, alone, patterns, size, access=None, reachable=frozenset()):
        """One copy alone before and after, which shows whether the machine itself changed meanwhile."""
        for name, ends in (alone, *patterns, *([alone] if patterns else [])):
            row = {"pattern": name, "flows": len(ends), "size_bytes": size}
            if access is not None and reachable.issuperset(ends):
                row["peer_access"] = access
            if time.monotonic() > self.until:
                lost(f"{name}, {size} bytes", "no time left")
            else:
                self.row(row, ends)

    def row(self, row, ends):
        """Prints a row; a failing row costs only itself."""
        try:
            flows = [self.flow(source, destination, row["size_bytes"]) for source, destination in ends]
            self.torch.cuda.set_device(next(end for end in ends[0] if end != "cpu"))
            report(row, "device", *self.clock.together(flows), flows=len(ends))
        except (OSError, RuntimeError) as error:
            lost("{pattern}, {size_bytes} bytes".format(**row), error)

    def flow(self, source, destination, size):
        """(copy, stream) of one source and destination; both are cached."""
        ends = (source, destination)
        if ends not in self.flows:
            self.flows[ends] = self.opened(source, destination)
        what, target, stream = self.flows[ends]
        if "cpu" in ends:
            return self.gpus.copy(target, what, size, stream), stream
        return self.gpus.peer_copy(source, destination, size, stream, target), stream

    def opened(self, source, destination):
        """The source buffer, a new target, and a stream: of the source, or of the only GPU."""
        gpu = destination if source == "cpu" else source
        what = self.new("cpu") if source == "cpu" else self.gpus.buffers[source][0]
        return what, self.new(destination), self.torch.cuda.Stream(gpu)

    def new(self, where):
        torch, size = self.torch, self.gpus.sizes[-1]
        if where == "cpu":
            return torch.zeros(size, dtype=torch.uint8, pin_memory=True)
        made = torch.zeros(size, dtype=torch.uint8, device=f"cuda:{where}")
        torch.cuda.synchronize(where)  # torch wrote on its own stream
        return made
