"""Who is signed in, with what the bar above every page tells them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.db.models import Count, Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce

from webapp.accounts.models import User
from webapp.review.waiting import counts


class Backend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        """One query for the person, how often they were named since they last looked, what waits for their
        word, and whether anybody else has an account."""
        here = User.objects.filter(
            pk=OuterRef("pk"), mentions__isnull=False, mentions__seen_at=None
        )
        named = here.order_by().values("pk").annotate(count=Count("mentions")).values("count")
        unseen = Coalesce(Subquery(named), 0)
        company = Exists(User.objects.filter(is_active=True).exclude(pk=OuterRef("pk")))
        found = User.objects.annotate(unseen=unseen, company=company, **counts())
        user = found.filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None
