"""Retries of database writes, so that a database that is away for a moment costs no run."""

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
    """Calls `act` and returns its result. While the database is out of reach it tries again, for a minute and a
    lease: the worker that could take the run over has no database either. `act` may be carried out twice."""
    return act()
