"""`serve [--host H] [--port N]`: the web application, with its worker inside when there is no Redis."""

import errno
import logging
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from gunicorn.app.base import BaseApplication

from webapp.accounts.models import OneTimeLink, User
from worker import embedded
from worker.gc_freeze import freeze_loaded

THREADS = 16
# Of each process; 1024 open files are what a service may have by default, and each thread has others.
CONNECTIONS = 800
# A client that sends nothing, or takes nothing, for so long gives its thread back. Accepted sockets inherit
# both on Linux. A slow one takes a third of the kernel's buffer at a time, which is up to 4 MB.
IDLE_S, UNTAKEN_S = 15, 60
MOST_PORT = 65535
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Command(BaseCommand):
    help = "Serves Peerpath. Without Redis, runs are worked on by the same process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")

    def handle(self, *, host: str, port: int, **_: Any) -> None:
        listener = _listen(host, port)
        if not os.environ.get("PEERPATH_PUBLIC_URL"):
            settings.PUBLIC_URL = f"http://{_in_url(host)}:{listener.getsockname()[1]}"
        _prepare_database()
        logging.captureWarnings(True)
        self._greet(host)
        freeze_loaded()
        _Server(_options(listener), get_wsgi_application).run()

    def _greet(self, host: str) -> None:
        self.stdout.write(f"Peerpath is at {settings.PUBLIC_URL} (stop with Ctrl-C)")
        if host not in LOOPBACK and not os.environ.get("PEERPATH_PUBLIC_URL"):
            self.stdout.write(
                "Set PEERPATH_PUBLIC_URL to the address others use: only that name is served to"
                " them, and links for them are made from it."
            )
        if not User.objects.exists() and not settings.EMBEDDED_WORKER:
            # What a service prints is kept in logs; a link that opens by itself must not be.
            self.stdout.write("Nobody has an account yet: manage.py invite --admin prints a link.")
        elif not User.objects.exists():
            self.stdout.write(
                "Nobody has an account yet. This link makes the first administrator, once, within"
                f" 24 hours:\n  {_first_administrators_link()}"
            )
        self.stdout.flush()


def _first_administrators_link() -> str:
    # Links of earlier starts may stand in a scrollback; only the newest is good.
    OneTimeLink.objects.filter(makes_admin=True, invited_by=None, used_at=None).delete()
    _, token = OneTimeLink.make(makes_admin=True)
    return f"{settings.PUBLIC_URL}/welcome/{token}"


def _prepare_database() -> None:
    """Brings our own SQLite up to date; a database that others may share is only looked at."""
    try:
        if settings.EMBEDDED_WORKER and connection.vendor == "sqlite":
            settings.DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
            call_command("migrate", verbosity=0, interactive=False)
            return
        executor = MigrationExecutor(connection)
        unapplied = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (DatabaseError, OSError) as error:
        raise CommandError(f"The database cannot be used: {error}") from error
    finally:
        connection.close()  # the server forks; a connection must not be shared
    if unapplied:
        raise CommandError("The database is not up to date with this version: ./run migrate")


def _listen(host: str, port: int) -> socket.socket:
    """Bound here, so that a port in use is one clear sentence and not a server that tries again."""
    if not 0 <= port <= MOST_PORT:  # getaddrinfo would take 70000 for 4464
        raise CommandError(f"{port} is not a port; ports are 1 to {MOST_PORT}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for option, seconds in ((socket.SO_RCVTIMEO, IDLE_S), (socket.SO_SNDTIMEO, UNTAKEN_S)):
            listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        raise CommandError(_why_not(error, host, port)) from error
    listener.set_inheritable(True)
    return listener


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Choose another: --port {port + 1}"
    if error.errno == errno.EACCES:
        return f"Port {port} needs rights that this user has not. Choose one above 1023."
    return f"Cannot listen on {host} port {port}: {error.strerror or error}"


def _in_url(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 (compared with, not bound to)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _options(listener: socket.socket) -> dict[str, Any]:
    """Without Redis one process: the in-memory queue and the embedded worker live in it."""
    options: dict[str, Any] = {
        "bind": f"fd://{listener.fileno()}",
        "workers": settings.WEB_PROCESSES,
        "worker_class": "gthread",
        "threads": THREADS,
        "worker_connections": CONNECTIONS,
        "timeout": 120,
        "graceful_timeout": 10,
        "errorlog": None,
        "logconfig_dict": settings.LOGGING,
        "control_socket_disable": True,
    }
    if settings.EMBEDDED_WORKER:
        started: list[embedded.Embedded] = []
        options["post_worker_init"] = lambda worker: started.append(embedded.start())
        options["worker_exit"] = lambda server, worker: started.pop().stop() if started else None
    return options


class _Server(BaseApplication):  # type: ignore[misc]
    """Gunicorn without its command line and configuration files."""

    def __init__(self, options: Mapping[str, Any], make: Callable[[], Any]) -> None:
        self._given = options
        self._make = make
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._given.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return self._make()
