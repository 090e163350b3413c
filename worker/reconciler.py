"""Puts right what a crash left behind: leases that ran out, messages that vanished.

Each step is a conditional UPDATE, so that a second reconciler does no harm.
"""

import logging
import threading

from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from webapp.accounts.models import Tally
from webapp.notices.queue import send_what_waits
from webapp.runs import lifecycle
from worker.recovery import recover_lost, recover_waiting

EVERY_S = 5.0
logger = logging.getLogger(__name__)


def reconcile_once() -> tuple[int, int]:
    """(runs ended as lost, messages sent again)."""
    now = timezone.now()
    lost = lifecycle.expire_leases(now)
    recover_lost(now)
    recover_waiting()
    send_what_waits()
    Tally.forget_ended()
    return lost, lifecycle.resend_lost_messages(now)


def reconcile_until(stop: threading.Event) -> None:
    """Every five seconds until `stop` is set. A database out of reach is tried again."""
    while not stop.is_set():
        close_old_connections()
        try:
            lost, sent = reconcile_once()
            if lost or sent:
                logger.warning("%d runs were lost, %d messages were sent again", lost, sent)
        except DatabaseError as error:
            logger.warning("the database did not answer: %s", error)
        stop.wait(EVERY_S)
    close_old_connections()
