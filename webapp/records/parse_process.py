"""Runs work on a large text in a child process.

Parsing holds Python's interpreter lock; a megabyte of short lines takes seconds, in which every page
that the same process serves would freeze. The child is bounded in time and number, and killed when it
takes too long.
"""

import multiprocessing
from collections.abc import Callable
from math import ceil
from multiprocessing.connection import Connection
from threading import BoundedSemaphore
from typing import TypeVar

from agents.limits import limit_this_process

T = TypeVar("T")

LARGE_BYTES = 1 << 17

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they stand
_AT_ONCE = BoundedSemaphore(2)


def apart(work: Callable[..., T], *args: object, timeout_s: float) -> T | None:
    """What a module's function returns, run in a child. None when it takes too long, or waits as long for other
    texts."""
    if not _AT_ONCE.acquire(timeout=timeout_s):
        return None
    try:
        receiver, sender = _SPAWN.Pipe(duplex=False)
        child = _SPAWN.Process(target=_run_child, args=(sender, work, args, timeout_s))
        child.start()
        sender.close()
        try:
            answer: T | None = receiver.recv() if receiver.poll(timeout_s) else None
        except EOFError:  # the child died, of memory for instance
            answer = None
        finally:
            child.kill()
            child.join()
            receiver.close()
    finally:
        _AT_ONCE.release()
    return answer


def _run_child(sender: Connection, work: Callable[..., object], args: tuple[object, ...], timeout_s: float) -> None:
    """Bounded in memory as well: a text may make a parser take many times its size."""
    limit_this_process(cpu_s=ceil(timeout_s))
    sender.send(work(*args))
