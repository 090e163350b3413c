"""Carries a database over from the schema before 0.1.0, whose tables had the names of rooms that are gone.

Every row is copied into the tables of this version. The old ones stay: in a file of their own (SQLite) or in the
schema `peerpath_before` (PostgreSQL), until somebody deletes them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

from webapp.accounts.stored_factors import carry_over as second_factors_carry_over

# The last migration of each app of before. An older state is brought there by the version that it is of.
LAST = {
    "triage": "0018_runs_found",
    "review": "0010_came_redacted",
    "handoff": "0005_taken_back_and_declined",
    "accounts": "0009_sign_ins_by_their_hash",
}
RENAMED = (("records_link", "handoff_link"), ("records_answer", "handoff_answer"), ("records_", "triage_"))
# Django fills the tables of these apps when it migrates.
FILLED_BY_DJANGO = frozenset({"contenttypes", "auth"})
BEFORE = "peerpath_before"


class CarryOverError(Exception):
    """Why nothing was carried over; a sentence for people."""


def is_of_before() -> bool:
    """Whether this database has the schema of before."""
    return "triage" in _applied_migrations()


def carry_over() -> dict[str, int]:
    """Rows copied, by table. Raises CarryOverError; after any error the database is as it was."""
    applied = _applied_migrations()
    if "triage" not in applied:
        raise CarryOverError("This database has today’s schema already: there is nothing to carry over.")
    if behind := [app for app, name in LAST.items() if applied.get(app) != name]:
        raise CarryOverError(
            f"The schema of {', '.join(behind)} is older than the last one of before. Run `./run migrate` once with"
            " the version that made this database, then carry it over."
        )
    with _old_tables_aside():
        call_command("migrate", verbosity=0, interactive=False)
        with transaction.atomic():
            return _copy_all()


def _applied_migrations() -> dict[str, str]:
    """The last migration of each app, as the database says."""
    if "django_migrations" not in connection.introspection.table_names():
        return {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, max(name) FROM django_migrations GROUP BY app")
        return dict(cursor.fetchall())


def _copy_all() -> dict[str, int]:
    models = [m for m in apps.get_models(include_auto_created=True) if m._meta.app_label not in FILLED_BY_DJANGO]
    rows = {model._meta.db_table: _copy_rows(model) for model in models}
    _set_groups_aside()
    _second_factors()
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
    return rows


def _second_factors() -> None:
    """Their old tables are found by name alone: SQLite looks into the attached file by itself."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL search_path TO public, {BEFORE}")
    second_factors_carry_over()


def _set_groups_aside() -> None:
    """Groups of machines do not exist any more. The facts of their machines never counted for the session."""
    if "beside" not in _columns("triage_target"):
        return
    with connection.cursor() as cursor:
        statement = (
            "UPDATE records_evidence SET set_aside_at = CURRENT_TIMESTAMP WHERE set_aside_at IS NULL AND run_id IN"
            " (SELECT run.id FROM records_run AS run JOIN {before}.triage_target AS target ON target.id = run.target_id"
            " WHERE target.beside)"
        )
        cursor.execute(statement.format(before=BEFORE))


def _copy_rows(model: type[Model]) -> int:
    """Rows copied into this model's table; a column that is new has its default."""
    table = model._meta.db_table
    old_columns = _columns(_name_before(table))
    if not old_columns:
        return 0
    names, values, defaults = [], [], []
    for field in model._meta.local_concrete_fields:
        column = field.column or ""
        names.append(connection.ops.quote_name(column))
        if column in old_columns:
            values.append(names[-1])
        else:
            values.append("%s")
            defaults.append(field.get_db_prep_save(field.get_default(), connection))
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({", ".join(names)})'  # noqa: S608 (names of our own models)
            f' SELECT {", ".join(values)} FROM {BEFORE}."{_name_before(table)}"',
            defaults,
        )
        return int(cursor.rowcount)


def _name_before(table: str) -> str:
    for new, old in RENAMED:
        if table.startswith(new):
            return old + table.removeprefix(new)
    return table


def _columns(table: str) -> set[str]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name FROM pragma_table_info(%s, %s)", [table, BEFORE])
        else:
            cursor.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
                [BEFORE, table],
            )
        return {row[0] for row in cursor.fetchall()}


@contextmanager
def _old_tables_aside() -> Iterator[None]:
    """The database is empty inside, and what it held is readable as `peerpath_before`."""
    with _old_file_aside() if connection.vendor == "sqlite" else _old_schema_aside():
        yield


@contextmanager
def _old_file_aside() -> Iterator[None]:
    path = Path(str(connection.settings_dict["NAME"]))
    before = path.with_name(f"{path.stem}-before{path.suffix}")
    if before.exists():
        raise CarryOverError(f"{before} is in the way: it is left of an earlier try. Move it elsewhere.")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    path.rename(before)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"ATTACH DATABASE %s AS {BEFORE}", [str(before)])
        yield
    except BaseException:
        connection.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        before.rename(path)
        raise
    connection.close()


@contextmanager
def _old_schema_aside() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SCHEMA public RENAME TO {BEFORE}")
        cursor.execute("CREATE SCHEMA public")
    try:
        yield
    except BaseException:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA public CASCADE")
            cursor.execute(f"ALTER SCHEMA {BEFORE} RENAME TO public")
        raise
