"""What was compared when a record was closed, and an end without a claim about its effect."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0008_passed_over"),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="proof",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name="decision",
            name="state",
            field=models.CharField(
                choices=[
                    ("draft", "Draft"), ("proposed", "Proposed"), ("approved", "Approved"),
                    ("rejected", "Rejected"), ("applied", "Applied"), ("verified", "Verified"),
                    ("no_effect", "no effect"), ("not_verified", "not verified"),
                    ("reverted", "Reverted"), ("superseded", "Superseded"),
                ],
                default="draft", max_length=12,
            ),
        ),
    ]  # fmt: skip
