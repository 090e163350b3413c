import hashlib
import zlib

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Length

from webapp.triage.long_text import BLOCK_BYTES, in_blocks


def cut_up(apps, schema_editor):
    """Long outputs in the database; those outside stay one object each."""
    evidence = apps.get_model('triage', 'Evidence').objects
    blocks = apps.get_model('triage', 'EvidenceBlock').objects
    for pk in list(evidence.annotate(length=Length('body')).filter(length__gt=BLOCK_BYTES).values_list('pk', flat=True)):
        raw = bytes(evidence.values_list('body', flat=True).get(pk=pk))
        for number, (lines, part) in enumerate(in_blocks(raw)):
            blocks.create(
                evidence_id=pk, number=number, lines=lines, sha256=hashlib.sha256(part).hexdigest(), body=zlib.compress(part, 1)
            )
        evidence.filter(pk=pk).update(body=b'')


def put_together(apps, schema_editor):
    evidence = apps.get_model('triage', 'Evidence').objects
    blocks = apps.get_model('triage', 'EvidenceBlock').objects
    if blocks.exclude(place='').exists():
        raise RuntimeError('Outputs outside the database lie there in blocks now; an earlier version cannot read them.')
    for pk in set(blocks.values_list('evidence', flat=True)):
        parts = blocks.filter(evidence=pk).order_by('number').values_list('body', flat=True)
        evidence.filter(pk=pk).update(body=b''.join(zlib.decompress(part) for part in parts))


class Migration(migrations.Migration):

    dependencies = [
        ('triage', '0013_visits_of_a_person'),
    ]

    operations = [
        migrations.CreateModel(
            name='EvidenceBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('lines', models.PositiveIntegerField()),
                ('sha256', models.CharField(max_length=64)),
                ('body', models.BinaryField(default=b'')),
                ('place', models.CharField(blank=True, max_length=100)),
                ('evidence', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='triage.evidence')),
            ],
            options={
                'ordering': ('number',),
                'constraints': [models.UniqueConstraint(fields=('evidence', 'number'), name='one_block_number')],
            },
        ),
        migrations.RunPython(cut_up, put_together),
    ]
