"""Waiting for what another process or thread does: for a state, never for a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

# Only what never happens takes so long: a busy machine needs seconds where a quiet one needs none.
LIMIT_S = 60.0
# As the decimals of how long something sleeps, tells the processes of this run of tests from those beside it.
OWN = f"{os.getpid():07}"


def wait_until(what: Callable[[], object]) -> None:
    """Until it is so; an AssertionError when it is not within LIMIT_S."""
    deadline = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def wait_for_end(thread: threading.Thread) -> None:
    thread.join(LIMIT_S)
    assert not thread.is_alive(), "it did not end in time"
