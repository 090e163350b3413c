"""Follows the event log and queues messages about new events for the people who want them."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.notices.kinds import DEFAULTS, EVENTS, LONG_RUN
from webapp.notices.models import Choice, Delivery, Webhook
from webapp.notices.wording import Notice, notice_of
from webapp.records.models import DiagnosisSession, Event, News, Run
from webapp.records.models.session import stands
from webapp.review.models import Mention

# After a long outage old events are not announced.
STALE = timedelta(days=1)


def sessions_with_news(most: int) -> list[UUID]:
    rows = News.objects.order_by("event").values_list("session", flat=True)[: most * 20]
    return list(dict.fromkeys(rows))[:most]


def follow(session_id: UUID) -> list[UUID]:
    """Makes messages of a session's news; returns their ids. Done twice at once it does no harm: one
    event makes one message for each."""
    session = DiagnosisSession.objects.select_related("owner").filter(pk=session_id).first()
    if session is None:
        return []
    numbers = list(session.news.values_list("event", flat=True))
    events = Event.objects.filter(pk__in=numbers, kind__in=EVENTS, at__gt=timezone.now() - STALE)
    made = [d for event in events.select_related("session") for d in _deliveries(event)]
    with transaction.atomic():
        Delivery.objects.bulk_create(made, ignore_conflicts=True)
        News.objects.filter(event__in=numbers).delete()
    return [delivery.pk for delivery in made]


def _deliveries(event: Event) -> Iterator[Delivery]:
    if not _is_worth_it(event):
        return
    notice, now = notice_of(event), timezone.now()
    about = {"event": event, "kind": notice.kind, "body": notice.as_json(), "due_at": now}
    whose = Q(session=event.session_id) | Q(session=None)
    for webhook in Webhook.objects.filter(whose, stands(), removed_at=None):
        if notice.kind in webhook.kinds:
            yield Delivery(webhook=webhook, **about)
    for user in _people(notice) if settings.MAIL_ON else ():
        yield Delivery(user=user, **about)


def _is_worth_it(event: Event) -> bool:
    """A short run was watched; a comment is news to those it names."""
    if event.kind == "commented":
        return Mention.objects.filter(comment=event.data.get("comment")).exists()
    if event.kind != "run_finished":
        return True
    run = Run.objects.filter(pk=event.data.get("run")).first()
    if run is None or run.started_at is None or run.ended_at is None:
        return False
    return run.ended_at - run.started_at >= LONG_RUN


def _people(notice: Notice) -> list[User]:
    """Members of the session with an address who want this kind of notice; not the person who acted."""
    event = notice.event
    people = User.objects.filter(is_active=True).exclude(email="")
    if event.actor_id is not None:
        people = people.exclude(pk=event.actor_id)
    if notice.kind == "mention":
        people = people.filter(mentions__comment=event.data.get("comment"))
    else:
        people = people.filter(sessions=event.session)
    recipients = list(people.distinct())
    chosen = dict(Choice.objects.filter(user__in=recipients).values_list("user", "kinds"))
    return [user for user in recipients if notice.kind in chosen.get(user.pk, DEFAULTS)]
