from django.db import migrations, models
from django.db.models.functions import Length


def _measure(apps, schema_editor):
    apps.get_model('triage', 'Evidence').objects.update(size_bytes=Length('body'))


class Migration(migrations.Migration):

    dependencies = [
        ('triage', '0006_actor_name'),
    ]

    operations = [
        migrations.AddField(
            model_name='evidence',
            name='place',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='evidence',
            name='purged_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='evidence',
            name='size_bytes',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='run',
            name='failure',
            field=models.CharField(blank=True, max_length=40),
        ),
        migrations.AlterField(
            model_name='evidence',
            name='body',
            field=models.BinaryField(default=b''),
        ),
        migrations.AddIndex(
            model_name='storedreading',
            index=models.Index(condition=models.Q(('kind', 'unreadable')), fields=['fact_id'], name='unreadable_readings'),
        ),
        migrations.RunPython(_measure, migrations.RunPython.noop, elidable=True),
    ]
