"""What was hidden of a session before it came here as a redacted bundle."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0009_proof"),
        ("triage", "0018_runs_found"),
    ]

    operations = [
        migrations.CreateModel(
            name="CameRedacted",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("report", models.JSONField()),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="came_redacted",
                        to="triage.diagnosissession",
                    ),
                ),
            ],
        ),
    ]
