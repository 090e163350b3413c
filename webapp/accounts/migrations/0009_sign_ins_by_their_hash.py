"""Who is signed in stays so: the keys that stood here are hashed."""

from __future__ import annotations

from typing import Any

from django.db import migrations

from webapp.accounts.sign_ins import kept_as


def hash_keys(apps: Any, _: Any) -> None:
    kept = apps.get_model("sessions", "Session").objects
    for key in list(kept.values_list("pk", flat=True)):
        kept.filter(pk=key).update(session_key=kept_as(key))


def end_all(apps: Any, _: Any) -> None:
    """No key can be made of its hash: people sign in again."""
    apps.get_model("sessions", "Session").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = (
        ("accounts", "0008_who_came_by_an_invitation"),
        ("sessions", "0001_initial"),
    )
    operations = (migrations.RunPython(hash_keys, end_all),)
