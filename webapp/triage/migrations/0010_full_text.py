"""The index over what can be searched, by the database's own means: it follows the table by itself.

PostgreSQL: a column of lexemes made from `words`, which holds plain words with one blank between.
SQLite: FTS5 with the table as its content, kept by triggers as its manual says.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

POSTGRESQL = (
    "ALTER TABLE triage_entry ADD COLUMN lexemes tsvector GENERATED ALWAYS AS"
    " (array_to_tsvector(string_to_array(words, ' '))) STORED",
    "CREATE INDEX entries_lexemes ON triage_entry USING gin (lexemes)",
)
SQLITE = (
    "CREATE VIRTUAL TABLE triage_entry_words USING fts5"
    " (words, content='triage_entry', content_rowid='id', prefix='2 3', tokenize='unicode61')",
    "CREATE TRIGGER triage_entry_added AFTER INSERT ON triage_entry BEGIN"
    " INSERT INTO triage_entry_words(rowid, words) VALUES (new.id, new.words); END",
    "CREATE TRIGGER triage_entry_removed AFTER DELETE ON triage_entry BEGIN"
    " INSERT INTO triage_entry_words(triage_entry_words, rowid, words)"
    " VALUES ('delete', old.id, old.words); END",
    "CREATE TRIGGER triage_entry_changed AFTER UPDATE OF words ON triage_entry BEGIN"
    " INSERT INTO triage_entry_words(triage_entry_words, rowid, words)"
    " VALUES ('delete', old.id, old.words);"
    " INSERT INTO triage_entry_words(rowid, words) VALUES (new.id, new.words); END",
)
# Every session there is has news, so that its digest is made.
FOLLOW_ALL = (
    "INSERT INTO triage_news (event_id, session_id)"
    " SELECT max(id), session_id FROM triage_event GROUP BY session_id"
)


def make(apps: Any, schema_editor: Any) -> None:
    postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in (*(POSTGRESQL if postgresql else SQLITE), FOLLOW_ALL):
        schema_editor.execute(statement)


def drop(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE triage_entry DROP COLUMN lexemes")
        return
    for name in ("added", "removed", "changed"):
        schema_editor.execute(f"DROP TRIGGER triage_entry_{name}")
    schema_editor.execute("DROP TABLE triage_entry_words")


class Migration(migrations.Migration):
    dependencies = [("triage", "0009_digests")]
    operations = [migrations.RunPython(make, drop)]
