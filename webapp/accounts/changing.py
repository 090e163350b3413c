"""What an account may do, changed by an administrator."""

from __future__ import annotations

from django.db import transaction

from webapp.accounts.models import Role, User

OUT = "out"  # no way in; what they did stays theirs


def account_change(person: User, role: str) -> bool:
    """Gives the account a role, or closes it (OUT). False when no administrator would be left.

    Someone who may no longer enter, or no longer as an administrator, is so from their next request on:
    Django asks for `is_active` and `is_staff` each time.
    """
    with transaction.atomic():
        staff = User.objects.select_for_update().filter(is_staff=True, is_active=True)
        others = [user.pk for user in staff if user.pk != person.pk]
        if role != Role.ADMINISTRATOR and not others:
            return False
        person.is_active = role != OUT
        person.is_staff = person.is_superuser = role == Role.ADMINISTRATOR
        if role not in {OUT, Role.ADMINISTRATOR}:
            person.role = role
        person.save(update_fields=["is_active", "is_staff", "is_superuser", "role"])
    return True
