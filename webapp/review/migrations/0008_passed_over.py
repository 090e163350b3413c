"""Why what was recommended was not chosen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0007_words_and_versions"),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="passed_over",
            field=models.TextField(blank=True, default=""),
            preserve_default=False,
        ),
    ]
