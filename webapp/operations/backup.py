"""Copies of the whole database, made while it is in use, and put back whole or not at all.

SQLite: a database file. PostgreSQL: what `pg_dump -Fc` writes. Each can be read with its own tools. What lies
outside the database is not in it: the keys of the data folder, and evidence that lies elsewhere.
"""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import connection

from webapp.records.models import DiagnosisSession

MARKS = {b"SQLite format 3\0": "sqlite", b"PGDMP": "postgresql"}
TABLE = DiagnosisSession._meta.db_table


class BackupError(Exception):
    """Why there is no copy, or why nothing was put back; a sentence for people."""


def save(path: Path) -> None:
    """Raises BackupError, also when there is a file already: a copy never replaces another one."""
    with _new_file(path) as made:
        if connection.vendor == "sqlite":
            with closing(sqlite3.connect(made)) as copy:
                _own_connection().backup(copy)
            _check_whole(made)
        else:
            _postgresql("pg_dump", "--format=custom", "--no-owner", f"--file={made}")


def put_back(path: Path) -> None:
    """Replaces everything in the database. Raises BackupError; then it is as it was."""
    kind = _kind(path)
    if kind != connection.vendor:
        raise BackupError(f"{path} is a copy of {kind}, and this installation uses {connection.vendor}.")
    if kind == "sqlite":
        _check_whole(path)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
            copy.backup(_own_connection())
    else:
        _replace_schema(path)
    connection.close()


def is_empty() -> bool:
    """Whether nobody has opened a session here, or there are no tables yet."""
    return TABLE not in connection.introspection.table_names() or not DiagnosisSession.objects.exists()


def _replace_schema(path: Path) -> None:
    """The whole schema goes: tables that only a newer version has would be in the way. As SQL in a file
    first, so that a damaged copy is noticed before anything is touched."""
    sql = path.with_name(f"{path.name}.{os.getpid()}.sql")
    try:
        sql.touch(mode=0o600, exist_ok=False)
        _postgresql("pg_restore", "--no-owner", f"--file={sql}", str(path))
        _postgresql(
            "psql",
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
            "--command=DROP SCHEMA public CASCADE",
            "--command=CREATE SCHEMA public",
            f"--file={sql}",
        )
    except OSError as error:
        raise BackupError(f"{sql} could not be written: {error}") from error
    finally:
        sql.unlink(missing_ok=True)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file beside it that takes its name once it is whole; readable by this account alone."""
    if path.exists():
        raise BackupError(f"There is a file {path} already; a copy replaces none.")
    made = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        made.touch(mode=0o600, exist_ok=False)
        yield made
        os.link(made, path)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"{path} could not be written: {error}") from error
    finally:
        made.unlink(missing_ok=True)


def _own_connection() -> sqlite3.Connection:
    connection.ensure_connection()
    own = connection.connection
    assert isinstance(own, sqlite3.Connection)
    return own


def _check_whole(path: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
            integrity = copy.execute("PRAGMA integrity_check").fetchone()[0]
            ours = copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone()
    except sqlite3.Error as error:
        raise BackupError(f"{path} cannot be read: {error}") from error
    if integrity != "ok" or not ours:
        raise BackupError(f"{path} is damaged, or no copy of Peerpath's database.")


def _kind(path: Path) -> str:
    try:
        with path.open("rb") as file:
            begin = file.read(16)
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}") from error
    for mark, kind in MARKS.items():
        if begin.startswith(mark):
            return kind
    raise BackupError(f"{path} is no copy that `backup` made.")


def _postgresql(program: str, *arguments: str) -> None:
    """The password goes by the environment: arguments stand in the list of processes."""
    settings_dict = connection.settings_dict
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    where = {variable: str(settings_dict[name]) for variable, name in names.items() if settings_dict.get(name)}
    where |= {f"PG{name.upper()}": str(value) for name, value in settings_dict["OPTIONS"].items()}  # libpq’s own names
    where["PGDATABASE"] = str(settings_dict["NAME"])
    try:
        done = subprocess.run(
            [program, *arguments], env=os.environ | where, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BackupError(f"{program} is not here; it comes with postgresql-client.") from None
    if done.returncode:
        raise BackupError(f"{program}: {done.stderr.strip()[-500:]}")
