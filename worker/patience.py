"""A database that is away for a moment costs no run: what has to be written is tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from webapp.triage import runs

_PAUSE_S = 0.5
_LONGEST_S = 60.0
T = TypeVar("T")

logger = logging.getLogger(__name__)


def patiently(act: Callable[[], T]) -> T:
    """What `act` returns; while the database is out of reach, again and again for a minute and a lease:
    who could take the run away is without the database too. `act` may have been carried out already when it
    is called again."""
    give_up = time.monotonic() + _LONGEST_S + runs.LEASE.total_seconds()
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() > give_up:
                raise
            logger.warning("the database did not answer, it is asked again: %s", error)
            time.sleep(_PAUSE_S)
