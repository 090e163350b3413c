"""The kinds of news that a person wants by mail."""

from collections.abc import Iterable

from webapp.accounts.models import User
from webapp.notices.kinds import DEFAULTS, KINDS
from webapp.notices.models import Choice


def chosen_by(user: User) -> list[str]:
    row = Choice.objects.filter(user=user).first()
    return list(row.kinds) if row else DEFAULTS


def choose(user: User, kinds: Iterable[str]) -> None:
    """Unknown kinds are left out."""
    known = [kind for kind in KINDS if kind in set(kinds)]
    Choice.objects.update_or_create(user=user, defaults={"kinds": known})
