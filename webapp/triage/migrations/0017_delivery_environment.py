from django.db import migrations


def with_environment(apps, schema_editor):
    """A check of bytes was its pairs alone. The cards are still in its evidence, for `reread`."""
    for row in _checks(apps):
        if 'pairs' not in row.value:
            row.value = {'pairs': row.value, 'environment': {}}
            row.save(update_fields=['value'])


def pairs_alone(apps, schema_editor):
    for row in _checks(apps):
        row.value = row.value['pairs']
        row.save(update_fields=['value'])


def _checks(apps):
    readings = apps.get_model('triage', 'StoredReading').objects
    return readings.filter(fact_id='bench.delivery', kind='known')


class Migration(migrations.Migration):

    dependencies = [
        ('triage', '0016_set_aside'),
    ]

    operations = [
        migrations.RunPython(with_environment, pairs_alone),
    ]
