"""Who is signed in, with what the bar above every page tells them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.db.models import Count, Exists, OuterRef, Q

from webapp.accounts.models import User


class Backend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        """One query for the person, how often they were named since they last looked, and whether anybody
        else has an account."""
        unseen = Count("mentions", filter=Q(mentions__seen_at=None))
        company = Exists(User.objects.filter(is_active=True).exclude(pk=OuterRef("pk")))
        found = User.objects.annotate(unseen=unseen, company=company)
        user = found.filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None
