"""Second factors move to django-allauth's tables."""

from __future__ import annotations

from typing import Any

from django.db import migrations

from webapp.accounts.carrying_over import carry_over


def forward(_: Any, __: Any) -> None:
    carry_over()


class Migration(migrations.Migration):
    dependencies = (("accounts", "0009_sign_ins_by_their_hash"), ("mfa", "0003_authenticator_type_uniq"))
    operations = (
        migrations.RunPython(forward),
        migrations.DeleteModel("Authenticator"),
        migrations.DeleteModel("Passkey"),
        migrations.DeleteModel("RecoveryCode"),
    )
