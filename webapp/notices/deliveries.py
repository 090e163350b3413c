"""The life of a message: waiting → sending → delivered, waiting again, or failed.

Every change is one conditional UPDATE. A worker that dies while it sends lets go of its message after a
minute; the receiver then may get it twice and knows it by its id.
"""

import json
import logging
import smtplib
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.utils import timezone

from webapp import sealing
from webapp.notices import webhook_client
from webapp.notices.models import Delivery, DeliveryState
from webapp.records.models import DiagnosisSession

SENDING_FOR = timedelta(minutes=1)  # posting and mailing end within 30 s
# Some three days in all: long enough for a weekend without the receiver.
PAUSES_S = (10, 60, 300, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 24 * 3600)
KEPT = timedelta(days=30)
OPEN = (DeliveryState.WAITING, DeliveryState.SENDING)

logger = logging.getLogger(__name__)


class GoneError(webhook_client.PostError):
    """The recipient does not exist any more."""

    def __init__(self) -> None:
        super().__init__("It was removed, or who is told, or had it told, may not be there any more.", None)


def due(now: datetime, most: int) -> list[UUID]:
    deliveries = Delivery.objects.filter(state__in=OPEN, due_at__lte=now).order_by("due_at")
    return list(deliveries.values_list("pk", flat=True)[:most])


def forget_old(now: datetime) -> int:
    """Those that ended a month ago. Returns how many."""
    old = Delivery.objects.exclude(state__in=OPEN).filter(ended_at__lt=now - KEPT)
    return old.delete()[0]


def deliver(delivery_id: UUID) -> None:
    """Sends the delivery if it is due and no other worker sends it."""
    now = timezone.now()
    claimed = Delivery.objects.filter(pk=delivery_id, state__in=OPEN, due_at__lte=now).update(
        state=DeliveryState.SENDING, due_at=now + SENDING_FOR, tries=F("tries") + 1
    )
    if not claimed:
        return
    delivery = Delivery.objects.select_related("webhook__made_by", "user", "event__session").get(pk=delivery_id)
    try:
        status = _post_webhook(delivery) if delivery.webhook else _send_mail(delivery)
    except GoneError as error:
        _end_delivery(delivery, DeliveryState.FAILED, str(error.args[0]), None)
    except webhook_client.PostError as error:
        _try_again(delivery, str(error.args[0]), error.args[1])
    except sealing.SealError as error:
        _try_again(delivery, str(error), None)
    except (smtplib.SMTPException, OSError) as error:
        _try_again(delivery, f"The mail server did not take it: {type(error).__name__}.", None)
    else:
        _end_delivery(delivery, DeliveryState.DELIVERED, "", status)


def _post_webhook(delivery: Delivery) -> int | None:
    webhook = delivery.webhook
    if webhook is None or webhook.removed_at or not webhook.stands:
        raise GoneError
    secret = sealing.keyring().open(webhook.key_id, webhook.sealed, str(webhook.pk))
    message = webhook_client.signed(
        delivery.body, secret=secret.decode(), delivery=str(delivery.pk), at=datetime.now(UTC)
    )
    return webhook_client.post(webhook.url, message)


def _send_mail(delivery: Delivery) -> int | None:
    user = delivery.user
    if user is None or not user.is_active or not user.email or not settings.MAIL_ON:
        raise GoneError
    if not DiagnosisSession.objects.visible_to(user).filter(pk=delivery.event.session_id).exists():
        raise GoneError  # they were removed while it waited
    notice = json.loads(delivery.body)
    subject = " ".join(notice["text"].split())[:200]  # a header has one line
    text = f"{notice['text']}\n\n{notice['url']}\n\nWhat you are told of: {settings.PUBLIC_URL}/account"
    mail = EmailMessage(subject, text, to=[user.email])
    mail.extra_headers = {"Auto-Submitted": "auto-generated"}  # RFC 3834: no holiday replies
    mail.send()
    return None


def _try_again(delivery: Delivery, problem: str, status: int | None) -> None:
    """After a pause, as long as there is one left; what waits for the same address waits along."""
    if delivery.tries > len(PAUSES_S):
        _end_delivery(delivery, DeliveryState.FAILED, problem, status)
        return
    next_at = timezone.now() + timedelta(seconds=PAUSES_S[delivery.tries - 1])
    Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries).update(
        state=DeliveryState.WAITING, due_at=next_at, problem=problem[:300], status=status
    )
    if delivery.webhook_id:
        others = Delivery.objects.filter(webhook=delivery.webhook_id, state=DeliveryState.WAITING)
        others.filter(due_at__lt=next_at).update(due_at=next_at)


def _end_delivery(delivery: Delivery, state: DeliveryState, problem: str, status: int | None) -> None:
    """tries is the fence: a worker that comes back late changes nothing."""
    Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries).update(
        state=state, problem=problem[:300], status=status, ended_at=timezone.now()
    )
    if state is DeliveryState.FAILED:
        logger.warning("notice %s was given up: %s", delivery.pk, problem)
