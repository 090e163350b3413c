"""Answers given through a link that no operator has accepted yet."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from webapp.accounts.models import Role, User
from webapp.handoff.models import Link
from webapp.records.models import SessionMember


def links_to_accept(user: User) -> QuerySet[Link]:
    """Links of sessions in which the person is an operator, the newest answer first."""
    mine = SessionMember.objects.filter(user=user, session=OuterRef("session"), role=Role.OPERATOR)
    may = Q() if user.is_staff else Q(Exists(mine))
    waiting = Q(received_at__isnull=False, accepted_at=None, given__evidence__set_aside_at=None)
    links = Link.objects.filter(may, waiting, given__isnull=False).distinct()
    return links.select_related("session").order_by("-received_at")
