"""A database that is away for a moment costs no run: what has to be written is tried again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from tenacity import before_sleep_log, retry, retry_if_exception_type, stop_after_delay, wait_fixed

from webapp.runs import lifecycle

_LONGEST_S = 60.0
T = TypeVar("T")


@retry(
    retry=retry_if_exception_type((OperationalError, InterfaceError)),
    after=lambda _: connection.close(),
    before_sleep=before_sleep_log(logging.getLogger(__name__), logging.WARNING),
    stop=stop_after_delay(_LONGEST_S + lifecycle.LEASE.total_seconds()),
    wait=wait_fixed(0.5),
    reraise=True,
)
def with_retry(act: Callable[[], T]) -> T:
    """What `act` returns; while the database is out of reach, again and again for a minute and a lease:
    who could take the run away is without the database too. `act` may have been carried out already when it
    is called again."""
    return act()
