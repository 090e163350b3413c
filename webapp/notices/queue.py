"""Sends news to the workers by task name. Messages that the broker did not take are found in the database again."""

import logging
from uuid import UUID

from django.utils import timezone
from kombu.exceptions import OperationalError

from webapp.notices import deliveries
from webapp.notices.fan_out import sessions_with_news
from webapp.runs.queue import celery

FOLLOW_TASK, DELIVER_TASK = "peerpath.follow", "peerpath.deliver"
MOST_SENT = 20  # each time the reconciler looks; one slow receiver must not fill the workers

logger = logging.getLogger(__name__)


def send_what_waits() -> int:
    """A message that there is news, and one for each message that is due. Returns how many."""
    messages: list[tuple[str, list[str]]] = []
    if sessions_with_news(1):
        messages.append((FOLLOW_TASK, []))
    due = deliveries.due(timezone.now(), MOST_SENT)
    messages += [(DELIVER_TASK, [str(pk)]) for pk in due]
    return sum(_send(name, arguments) for name, arguments in messages)


def send_delivery(delivery_id: UUID) -> bool:
    return _send(DELIVER_TASK, [str(delivery_id)])


def _send(name: str, arguments: list[str]) -> bool:
    try:
        celery.send_task(name, args=arguments)
    except (OperationalError, OSError) as error:
        logger.warning("news waits in the database, the broker is out of reach: %s", error)
        return False
    return True
