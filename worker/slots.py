"""A worker's slots: a thread that waits for a silent machine lends its slot to another run.

The threads of the worker are its slots. Opening a connection takes up to ten seconds, and a dead machine all of
them; runs at machines that answer must not pay for that.
"""

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Thread

PATIENCE_S = 1.0  # a machine in reach answers sooner
_STAND_INS = BoundedSemaphore(48)  # at once in this process; beyond that a waiting thread keeps its slot


@dataclass(slots=True)
class Slot:
    """One thread's right to work. work_on: carries out queued runs, until none may start."""

    work_on: Callable[[], None]
    _stand_in: Thread | None = field(default=None, init=False)

    def lend(self) -> None:
        """Starts a stand-in thread that works until nothing is left to do. Call it once."""
        if _STAND_INS.acquire(blocking=False):
            self._stand_in = Thread(target=copy_context().run, args=(self._stand_in_for,))
            self._stand_in.start()

    def take_back(self) -> None:
        """Waits until the stand-in has ended: a worker that ends must not leave a thread at work."""
        if self._stand_in is not None:
            self._stand_in.join()

    def _stand_in_for(self) -> None:
        try:
            self.work_on()
        finally:
            _STAND_INS.release()
