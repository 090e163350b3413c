"""Second factors move to django-allauth's tables, and the table that counts codes is made."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.db import migrations

from webapp.accounts.carrying_over import carry_over


def forward(_: Any, schema: Any) -> None:
    carry_over()
    call_command("createcachetable", database=schema.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies = (("accounts", "0009_sign_ins_by_their_hash"), ("mfa", "0003_authenticator_type_uniq"))
    operations = (
        migrations.RunPython(forward),
        migrations.DeleteModel("Authenticator"),
        migrations.DeleteModel("Passkey"),
        migrations.DeleteModel("RecoveryCode"),
    )
