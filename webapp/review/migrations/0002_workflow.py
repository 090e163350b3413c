import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def accepted_is_approved(apps, schema_editor):
    apps.get_model("review", "Decision").objects.filter(state="accepted").update(state="approved")


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameField("decision", "decided_by", "proposed_by"),
        migrations.RenameField("decision", "decided_at", "created_at"),
        migrations.AddField("decision", "drivers", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("decision", "consequences", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("decision", "version", models.PositiveIntegerField(default=0)),
        migrations.AddField(
            "decision",
            "supersedes",
            models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL,
                related_name="superseded_by", to="review.decision",
            ),
        ),
        migrations.AlterField(
            "decision",
            "state",
            models.CharField(
                choices=[
                    ("draft", "Draft"), ("proposed", "Proposed"), ("approved", "Approved"),
                    ("rejected", "Rejected"), ("applied", "Applied"), ("verified", "Verified"),
                    ("no_effect", "no effect"), ("reverted", "Reverted"), ("superseded", "Superseded"),
                ],
                default="draft", max_length=12,
            ),
        ),
        migrations.RunPython(accepted_is_approved, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(blank=True, max_length=120)),
                ("approves", models.BooleanField()),
                ("reason", models.TextField(blank=True)),
                ("content_sha256", models.CharField(max_length=64)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("by", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("decision", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="approvals", to="review.decision")),
            ],
            options={"ordering": ("id",)},
        ),
    ]
