import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('triage', '0007_outside_bodies'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('shared', models.BooleanField(default=False)),
                ('kind', models.CharField(max_length=60)),
                ('fingerprint', models.CharField(max_length=100)),
                ('certificate', models.TextField(blank=True)),
                ('sealed', models.TextField(blank=True)),
                ('key_id', models.CharField(blank=True, max_length=20)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('removed_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('removed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={'ordering': ('name', 'created_at')},
        ),
        migrations.AddField(
            model_name='target',
            name='stored_key',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='triage.storedkey'),
        ),
        migrations.AddField(
            model_name='target',
            name='beside',
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['state'], name='runs_by_state'),
        ),
    ]
