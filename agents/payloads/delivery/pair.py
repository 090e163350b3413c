"""One ordered pair of GPUs: every write from the first to the second, in one process and between two."""

import ctypes
import functools
import multiprocessing
import os
import signal

from checks import Owner, Writer, checked
from driver import Driver, Gpu
from lines import Refusal, lost, say
from memory import MemoryDriver, MemoryGpu
from processes import GO_ON

METHODS = ("copy_engine", "kernel_stores")
MAPPINGS = ("one_process", "ipc")


class Pair:
    """a and b: as CUDA counts the GPUs here. names: nvidia-smi's numbers. doing: memory shared with the watching
    process, which shows the current write in a hang."""

    def __init__(self, chosen, a, b, names, doing):
        self.chosen, self.a, self.b, self.doing = chosen, a, b, doing
        self.row = {"source": names[a], "destination": names[b]}

    def measure(self, mapping):
        self.now()
        try:
            (self.in_one_process if mapping == "one_process" else self.between_two)()
        except (OSError, EOFError, Refusal) as error:
            lost("{source} to {destination}, {0}".format(mapping, **self.row), error)
        return GO_ON

    def gpu(self, index):
        if self.chosen.device == "cpu":
            return MemoryGpu(self.chosen.simulate_fault)
        if not hasattr(self, "driver"):
            self.driver = Driver()
        return Gpu(self.driver, index)

    def in_one_process(self):
        source, destination = self.gpu(self.a), self.gpu(self.b)
        try:
            source.reach(destination)
        except OSError as error:
            self.say("one_process", verdict="unusable", why=str(error))
            return
        owner = Owner(destination, self.chosen.sizes[-1])
        self.try_all("one_process", source, owner, owner.buffer)

    def between_two(self):
        here, there = multiprocessing.Pipe()
        child = os.fork()
        if child == 0:
            here.close()  # or it never sees the other side close it
            serve(there, lambda: Owner(self.gpu(self.b), self.chosen.sizes[-1]))
        there.close()
        owner = RemoteOwner(here)
        source = self.gpu(self.a)
        try:
            target = source.opened(owner.handle(), self.chosen.sizes[-1])
        except OSError as error:
            self.say("ipc", verdict="unusable", why=str(error))
        else:
            self.try_all("ipc", source, owner, target)
        here.close()
        os.waitpid(child, 0)

    def try_all(self, mapping, source, owner, target):
        announce = functools.partial(self.now, mapping)
        fault, largest = self.chosen.simulate_fault, self.chosen.sizes[-1]
        writer = Writer(source, target, largest, fault, announce)
        for method in METHODS:
            try:
                source.prepare(method)
            except OSError as error:
                self.say(mapping, method=method, verdict="inconclusive", why=str(error))
                continue
            for size in self.chosen.sizes:
                seed = f"{self.chosen.nonce} {self.a} {self.b} {size} {mapping} {method}"
                outcome = checked(writer, owner, method, seed, size)
                self.now()
                self.say(mapping, method=method, size_bytes=size, **outcome)
                if outcome["verdict"] == "failed":
                    return  # CUDA gives every later call of this process the same error

    def say(self, mapping, **more):
        say(**self.row, mapping=mapping, **more)

    def now(self, *what):
        """Notes mapping, method and size during a write; only a write counts as a hang."""
        self.doing.seek(0)
        words = " ".join(map(str, what)) if len(what) == 3 else ""
        self.doing.write(words.encode().ljust(len(self.doing)))

    def hung(self):
        """The row of the hanging write; None when none had begun."""
        words = self.doing[:].decode().split()
        if not words:
            return None
        mapping, method, size = words
        why = f"nothing came back within {self.chosen.pair_seconds:g} s"
        more = {"mapping": mapping, "method": method, "size_bytes": int(size)}
        return {**self.row, **more, "verdict": "hang", "why": why}


class RemoteOwner:
    """The owner in its own process, behind a pipe."""

    def __init__(self, link):
        self.link = link

    def handle(self):
        return self.ask("handle")

    def poison(self, size):
        return self.ask("poison", size)

    def differences(self, seed, size):
        return self.ask("differences", seed, size)

    def ask(self, name, *args):
        self.link.send((name, args))
        answer = self.link.recv()
        if isinstance(answer, OSError):
            raise answer
        return answer


def serve(link, make):
    """Answers for an owner until the other side closes the pipe. Never returns."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        owner = make()
        while True:
            name, args = link.recv()
            try:
                link.send(getattr(owner, name)(*args))
            except OSError as error:
                link.send(error)
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def driver_of(chosen):
    return MemoryDriver(chosen.gpus) if chosen.device == "cpu" else Driver()
