from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("triage", "0010_full_text"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="run",
            name="runs_by_state",
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["state", "failure"], name="runs_by_state_and_failure"),
        ),
    ]
