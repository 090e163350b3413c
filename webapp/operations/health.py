"""Whether this process answers, and whether it can do its work. Neither says anything secret."""

import os
import shutil
from contextlib import closing
from pathlib import Path
from threading import Event

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.operations import evidence_storage

OK, OUT_OF_REACH = evidence_storage.OK, evidence_storage.OUT_OF_REACH
LEAST_FREE_MIB = 16  # SQLite's log is 4 MiB before it is taken in, and a paste is several
# Pages show what is known without the raw outputs, a run keeps its output in the database until the storage
# takes it, and a paste is answered with 503. Every process has the same storage, so that a balancer which
# heeded it would take all of them out at once: a part that is away would become all of it.
DONE_WITHOUT = frozenset({"storage"})
_WAIT_S = 3
_seen_up_to_date = Event()


@login_not_required
@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """200 as long as this process answers; it asks no other service. Restart the process when this fails."""
    return JsonResponse({"live": True})


@login_not_required
@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when database, migrations and broker work, else 503: then send it no people. "degraded" when a part that
    most pages do not need is away."""
    states = checks()
    good, degraded = is_ready(states), is_degraded(states)
    body = {"ready": good, "degraded": degraded, "checks": states}
    return JsonResponse(body, status=200 if good else 503)


def is_ready(states: dict[str, str]) -> bool:
    return all(state == OK for part, state in states.items() if part not in DONE_WITHOUT)


def is_degraded(states: dict[str, str]) -> bool:
    return any(states[part] != OK for part in DONE_WITHOUT)


def checks() -> dict[str, str]:
    """Each part and "ok", or what is wrong with it in words that name no host and no person."""
    database = _database()
    return {
        "database": database,
        "migrations": "not looked at" if database == OUT_OF_REACH else _migrations(),
        "broker": _broker(),
        "storage": evidence_storage.state(),
    }


def _database() -> str:
    """Opens a new connection: on a kept one the check would wait for a server that is frozen."""
    parameters = connection.get_connection_params()
    if connection.vendor == "postgresql":
        parameters["connect_timeout"] = _WAIT_S
    try:
        with connection.wrap_database_errors, closing(connection.get_new_connection(parameters)) as own:
            own.execute("SELECT 1")
    except DatabaseError:
        return OUT_OF_REACH
    return _free_space() if connection.vendor == "sqlite" else OK


def _free_space() -> str:
    """Whether SQLite's file can grow. The file is looked at and not written, because a write would wait for other
    writers. On a full disk pages show what is there, but nobody can sign in or keep anything."""
    if not takes_writes():
        return "cannot be written"
    free_mib = shutil.disk_usage(_file().parent).free >> 20
    return OK if free_mib >= LEAST_FREE_MIB else f"{free_mib} MiB are left on its disk"


def takes_writes() -> bool:
    """Whether SQLite can write its file, and its log in the folder beside it."""
    folder, file = _file().parent, _file()
    return os.access(folder, os.W_OK | os.X_OK) and (not file.exists() or os.access(file, os.W_OK))


def _file() -> Path:
    return Path(connection.settings_dict["NAME"])


def _migrations() -> str:
    try:
        return OK if _up_to_date() else "not up to date: ./run migrate"
    except DatabaseError:
        return "not looked at"


def _up_to_date() -> bool:
    """Asked with every migration's file in hand; once it is so, it stays so for this version."""
    if not _seen_up_to_date.is_set():
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _seen_up_to_date.set()
    return True


def _broker() -> str:
    if settings.EMBEDDED_WORKER:
        return OK  # the queue is in this process
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=_WAIT_S, socket_timeout=_WAIT_S) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return OUT_OF_REACH
    return OK
