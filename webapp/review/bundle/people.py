"""Names of people in bundles, and the accounts they stand for here."""

from __future__ import annotations

from webapp.accounts.models import ELSEWHERE, User


def name_of(user: User | None) -> str:
    """As the bundle names the person; the account of somebody elsewhere by their own name."""
    return user.username.removesuffix(ELSEWHERE) if user else ""


def account_elsewhere(name: str) -> User:
    """The account that stands for a person of another instance: nobody can sign in with it, and it is
    never one of a person here, whatever name a bundle says."""
    user, made = User.objects.get_or_create(
        username=f"{name[:130]}{ELSEWHERE}", defaults={"is_active": False, "role": "viewer"}
    )
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user
