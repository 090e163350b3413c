"""Accounts for administrators. Every change is logged with the person who made it (`by`)."""

import logging

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from webapp.accounts import second_factor
from webapp.accounts.models import ELSEWHERE, GIVEN, OneTimeLink, Role, User

OUT = "out"  # no way in; what they did stays theirs

logger = logging.getLogger(__name__)


class AccountError(Exception):
    """Nothing was changed; the text says why."""


def people() -> QuerySet[User]:
    """Everyone with an account, open or closed; not the stand-ins for another instance's people. Each with
    `second_factor`: whether it is on."""
    factor = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
    return User.objects.exclude(username__endswith=ELSEWHERE).annotate(second_factor=Exists(factor))


def invite(role: str, *, by: User) -> tuple[OneTimeLink, str]:
    """An invitation and its address, which is shown once."""
    role = role if role in Role.values else Role.OPERATOR
    link, secret = OneTimeLink.make(
        makes_admin=role == Role.ADMINISTRATOR, role=role if role in dict(GIVEN) else Role.OPERATOR, invited_by=by
    )
    logger.warning("%s invited somebody as %s", by.username, role)
    return link, f"{settings.PUBLIC_URL}/welcome/{secret}"


def account_change(person: User, role: str, *, by: str) -> None:
    """Gives the account a role, which lets in who was shut out, or closes it (OUT). Raises AccountError
    when no administrator would be left.

    Someone who may no longer enter, or no longer as an administrator, is so from their next request on:
    Django asks for `is_active` and `is_staff` each time.
    """
    with transaction.atomic():
        staff = User.objects.select_for_update().filter(is_staff=True, is_active=True)
        others = [user.pk for user in staff if user.pk != person.pk]
        if role != Role.ADMINISTRATOR and not others:
            raise AccountError("Somebody has to stay an administrator; make another one first.")
        person.is_active = role != OUT
        person.is_staff = person.is_superuser = role == Role.ADMINISTRATOR
        if role not in {OUT, Role.ADMINISTRATOR}:
            person.role = role
        person.save(update_fields=["is_active", "is_staff", "is_superuser", "role"])
    done = "shut %s out" if role == OUT else f"made %s {role}"
    logger.warning("%s " + done, by, person.username)


def second_factor_reset(person: User, *, by: User) -> None:
    """Lets a person in again who lost both authenticator and recovery codes. Raises AccountError."""
    if person.pk == by.pk:
        raise AccountError("Your own is turned off on your account, with your password.")
    if not second_factor.turn_off(person):
        raise AccountError(f"{person.username} has no second factor; there is nothing to reset.")
    logger.warning("%s reset the second factor of %s", by.username, person.username)
