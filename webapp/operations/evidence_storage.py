"""Whether the storage of evidence takes something and gives it back, soon and not at every question.

It is asked in a thread of its own: a folder of a file server that is gone holds whoever asks for as long as
it likes. Nobody asks anew while a question is open, so that one thread at most is held.
"""

import os
import time
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from django.conf import settings
from django.core.files.storage import Storage, storages

from webapp.records import blob_store

OK, OUT_OF_REACH, SILENT = "ok", "out of reach", "no answer"
WAIT_S, KEPT_S = 2.0, 10.0


@dataclass(slots=True)
class _Question:
    storage: Storage
    state: str = SILENT
    asked_at: float = field(default_factory=time.monotonic)
    answered: Event = field(default_factory=Event)

    @property
    def holds(self) -> bool:
        return not self.answered.is_set() or time.monotonic() - self.asked_at < KEPT_S

    def ask(self) -> None:
        try:
            blob_store.check()
            self.state = OK
        except blob_store.LostError as error:
            self.state = _problem_text(error.__cause__)
        finally:
            self.answered.set()


@dataclass(slots=True)
class _Asking:
    """The last question of this process."""

    lock: Lock = field(default_factory=Lock)
    last: _Question | None = None

    def current(self, storage: Storage) -> _Question:
        with self.lock:
            if self.last is None or self.last.storage is not storage or not self.last.holds:
                self.last = _Question(storage)
                Thread(target=self.last.ask, name="evidence storage", daemon=True).start()
            return self.last


_asking = _Asking()


def is_used() -> bool:
    return blob_store.STORAGE in settings.STORAGES


def state() -> str:
    """OK, or what is wrong in words that name no host and no folder. Waits WAIT_S at most; an answer is
    good for KEPT_S. OK where evidence lies in the database."""
    if not is_used():
        return OK
    question = _asking.current(storages[blob_store.STORAGE])
    question.answered.wait(max(0.0, question.asked_at + WAIT_S - time.monotonic()))
    return question.state


def _problem_text(cause: BaseException | None) -> str:
    return f"unusable: {os.strerror(cause.errno)}" if isinstance(cause, OSError) and cause.errno else OUT_OF_REACH
