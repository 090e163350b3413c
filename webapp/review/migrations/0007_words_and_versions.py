"""A word is more than yes or no, and each proposed version of a record is kept."""

import hashlib
import json

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CONTENT = (
    "title", "context", "options", "chosen", "reason", "drivers", "consequences", "pins", "epoch",
)  # fmt: skip
WORDS = [
    ("approved", "Approved"),
    ("rejected", "Rejected"),
    ("changes_wanted", "changes wanted"),
    ("withdrawn", "Withdrawn"),
]


def words(apps, schema_editor):
    apps.get_model("review", "Approval").objects.filter(approves=False).update(word="rejected")


def approves(apps, schema_editor):
    said = apps.get_model("review", "Approval").objects
    said.filter(word__in=("changes_wanted", "withdrawn")).delete()
    said.filter(word="rejected").update(approves=False)


def versions(apps, schema_editor):
    """What is proposed or judged now is the first version that can still be told."""
    kept = apps.get_model("review", "RecordVersion").objects
    for record in apps.get_model("review", "Decision").objects.exclude(state="draft").iterator():
        kept.create(
            decision=record,
            number=1,
            content={name: getattr(record, name) for name in CONTENT},
            content_sha256=_digest(record),
            proposed_by_id=record.proposed_by_id,
        )


def _digest(record):
    content = [record.title, record.context, record.drivers, record.options, record.chosen]
    body = json.dumps([*content, record.reason, record.consequences, record.pins], sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0006_mentions_unseen"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="word",
            field=models.CharField(choices=WORDS, default="approved", max_length=14),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="approval",
            name="disputes",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="approval",
            name="seen_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="approval",
            name="approves",
            field=models.BooleanField(default=True),
        ),
        migrations.RunPython(words, approves),
        migrations.RemoveField(model_name="approval", name="approves"),
        migrations.CreateModel(
            name="RecordVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("content", models.JSONField()),
                ("content_sha256", models.CharField(max_length=64)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "decision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="review.decision",
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ("number",)},
        ),
        migrations.AddConstraint(
            model_name="recordversion",
            constraint=models.UniqueConstraint(
                fields=("decision", "number"), name="one_record_version"
            ),
        ),
        migrations.RunPython(versions, migrations.RunPython.noop),
    ]
