"""Groups of machines are gone. What machines of a group said is set aside: it never counted for the session."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.utils import timezone


def set_aside(apps: Any, schema_editor: Any) -> None:
    evidence = apps.get_model("triage", "Evidence").objects.filter(set_aside_at=None)
    evidence.filter(run__target__beside=True).update(set_aside_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [("triage", "0018_runs_found")]
    operations = [
        migrations.RunPython(set_aside, migrations.RunPython.noop),
        migrations.RemoveField("target", "beside"),
    ]
