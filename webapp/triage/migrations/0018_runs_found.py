"""Runs can be found: every session that has one which ended has news, so that its digest is made again."""

from __future__ import annotations

from django.db import migrations

FOLLOW = (
    "INSERT INTO triage_news (event_id, session_id)"
    " SELECT max(id), session_id FROM triage_event"
    " WHERE session_id IN (SELECT session_id FROM triage_run WHERE ended_at IS NOT NULL)"
    " GROUP BY session_id HAVING max(id) NOT IN (SELECT event_id FROM triage_news)"
)


class Migration(migrations.Migration):
    dependencies = [("triage", "0017_delivery_environment")]
    operations = [migrations.RunSQL(FOLLOW, migrations.RunSQL.noop)]
