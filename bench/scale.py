"""How long pages take with 100,000 sessions and 2 million readings, and how many queries they ask.

    python -m bench.scale sqlite|postgresql [--sessions 100000] [--readings 2000000] [--requests 40]
        [--keep FOLDER|postgresql://…] [--only TEXT]

Server time: of a request through the whole middleware, in this process, with no network; queries counted
in one more request, of somebody who looked at the session half a minute ago, so that being there again is
noted. CPU: the mean, of this process and of PostgreSQL's that serves it; on a machine that does other things
too it tells more than the clock. Every session has the readings of the sample's guest, so that pages judge
real facts; one has a log of 10,000 events; one has something at every address there is (tests/webapp).
The database lies in a temporary folder and is removed afterwards, unless it is kept to be measured again:
what is there is brought up to date, not filled.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.scale_data import PEOPLE, RICH, fill

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MS, MOST_QUERIES = 150.0, 10


@contextlib.contextmanager
def database(kind: str, existing: str) -> Iterator[None]:
    """Migrated; this process's Django uses it. existing: a folder, or a PostgreSQL's address; "": a new one."""
    if existing:
        place = "PEERPATH_DATABASE_URL" if kind == "postgresql" else "PEERPATH_DATA"
        os.environ |= {"PEERPATH_DATABASE_URL": "", "PEERPATH_REDIS_URL": "", place: existing}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, check=True)
        yield
        return
    if kind == "postgresql":
        from bench.stack import stack

        with stack(PEERPATH_REDIS_URL=""):
            yield
        return
    folder = tempfile.mkdtemp(prefix="peerpath-scale-")
    os.environ |= {"PEERPATH_DATA": folder, "PEERPATH_DATABASE_URL": "", "PEERPATH_REDIS_URL": ""}
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, check=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Filled:
    """Who asks, and what they ask for. few: a member of 1,000 sessions; many: of all."""

    admin: Any
    few: Any
    many: Any
    rich: Any
    usual: list[Any]
    full: dict[str, Any]  # arguments of every address


def opened() -> Filled:
    """What was filled, now or before, and a new session with something at every address."""
    from allauth.mfa.models import Authenticator

    from tests.webapp.addresses import a_full_session
    from webapp.accounts.models import User
    from webapp.records.models import DiagnosisSession

    people = {user.username: user for user in User.objects.filter(username__in=PEOPLE)}
    Authenticator.objects.all().delete()  # sealed with a key that an earlier time had
    rich = DiagnosisSession.objects.get(title=RICH)
    step = DiagnosisSession.objects.count() // 50
    usual = DiagnosisSession.objects.filter(owner=people["many"], sample="").order_by("pk")
    full = a_full_session(people["admin"], people["few"])
    return Filled(**people, rich=rich, usual=list(usual[::step]), full=full)


def pages(filled: Filled) -> dict[str, tuple[Any, Callable[[int], str]]]:
    """Who asks for what; the number of the request varies it."""
    from webapp.records.session_list import page
    from webapp.records.session_search import Criteria

    second = page(filled.admin, Criteria()).after
    usual, rich = filled.usual, f"/sessions/{filled.rich.pk}"
    return {
        "start, administrator": (filled.admin, lambda n: "/"),
        "start, member of 1,000": (filled.few, lambda n: "/"),
        "start, member of all": (filled.many, lambda n: "/"),
        "start, second page": (filled.admin, lambda n: f"/?before={second.replace('+', '%2B')}"),
        "start, a usual word": (filled.admin, lambda n: "/?q=H200"),
        "start, a rare word": (filled.admin, lambda n: f"/?q=Case+{n * 997}"),
        "start, a usual word, member of all": (filled.many, lambda n: "/?q=H200"),
        "start, usual GPU and driver": (filled.admin, lambda n: "/?gpu=L40S&driver=580"),
        "start, verdict": (filled.few, lambda n: "/?verdict=no_clique"),
        "start, nothing like it": (filled.admin, lambda n: "/?gpu=nowhere"),
        "start, nothing like it, member of all": (filled.many, lambda n: "/?board=nowhere"),
        "search, a usual word": (filled.admin, lambda n: "/search?q=H200"),
        "search, usual words": (filled.admin, lambda n: "/search?q=gpu+clique"),
        "start, usual words": (filled.admin, lambda n: "/?q=gpu+clique"),
        "search, a rare word": (filled.admin, lambda n: f"/search?q=Case+{n * 997}"),
        "search, a usual word, member of 1,000": (filled.few, lambda n: "/search?q=H200"),
        "search, a usual word, member of all": (filled.many, lambda n: "/search?q=H200"),
        "search, no such word": (filled.admin, lambda n: "/search?q=xyzzy"),
        "decisions, administrator": (filled.admin, lambda n: "/decisions"),
        "decisions, member of all": (filled.many, lambda n: "/decisions"),
        "decisions, a word": (filled.admin, lambda n: f"/decisions?q=clique+{n * 35}"),
        "decisions, a state": (filled.admin, lambda n: "/decisions?state=verified"),
        "for me, administrator": (filled.admin, lambda n: "/for-me"),
        "for me, member of 1,000": (filled.few, lambda n: "/for-me"),
        "calibration": (filled.admin, lambda n: "/calibration"),
        "diagnosis, usual sessions": (filled.admin, _of(usual, "diagnosis")),
        "guest, usual sessions": (filled.admin, _of(usual, "guest")),
        "decide, usual sessions": (filled.admin, _of(usual, "decide")),
        "diagnosis, the whole sample": (filled.admin, lambda n: f"{rich}/diagnosis"),
        "log of 10,000 events": (filled.admin, lambda n: f"{rich}/log"),
        **{name: (filled.admin, _at(name, filled.full)) for name in _read_at()},
    }


def _read_at() -> list[str]:
    """The addresses that are pages of one session or of an administrator, files left out."""
    from tests.webapp.addresses import CONVERTERS, PAGES

    return [n for n in PAGES if "session_id" in CONVERTERS[n] or CONVERTERS[n] <= {"link_id"}]


def _at(name: str, full: dict[str, Any]) -> Callable[[int], str]:
    from tests.webapp.addresses import address

    return lambda n: address(name, full)


def _of(sessions: list[Any], path: str) -> Callable[[int], str]:
    return lambda n: f"/sessions/{sessions[n % len(sessions)].pk}/{path}"


def measure(
    user: Any, address: Callable[[int], str], requests: int, full: dict[str, Any]
) -> tuple[list[float], list[float], int]:
    """Milliseconds of each request, by the clock and of this process's CPU; the queries of one more."""
    from django.contrib.auth.models import AnonymousUser
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from tests.webapp.addresses import asked_in, browser_of
    from webapp.records.models import Visit

    by_link = address(0).startswith("/asked/")  # people without an account
    client = browser_of(AnonymousUser() if by_link else user, full)
    for number in range(2):
        _ask(client, address(number))
    took = [_ask(client, address(number)) for number in range(2, requests + 2)]
    Visit.objects.filter(user=user).update(at=timezone.now() - timedelta(seconds=30))
    with CaptureQueriesContext(connection) as queries:
        _ask(client, address(0))
    return [clock for clock, _ in took], [cpu for _, cpu in took], asked_in(queries)


def _cpu_s() -> float:
    """Of this process and of the PostgreSQL process that serves it, which counts in steps of 10 ms."""
    from django.db import connection

    own = time.process_time()
    if connection.vendor != "postgresql":
        return own
    stat = Path(f"/proc/{_backend()}/stat").read_text().rpartition(")")[2].split()
    return own + (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


@functools.cache
def _backend() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _ask(client: Any, address: str) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), _cpu_s()
    answer = client.get(address)
    took = (time.perf_counter() - begun) * 1e3, (_cpu_s() - cpu) * 1e3
    if answer.status_code not in (200, 302):
        raise RuntimeError(f"{address} answered {answer.status_code}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=("sqlite", "postgresql"))
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--readings", type=int, default=2_000_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--keep", default="", metavar="FOLDER|URL")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose name has it")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    with database(options.kind, options.keep):
        import django

        django.setup()
        from django.conf import settings

        from webapp.accounts.models import User
        from worker.gc_freeze import freeze_loaded

        settings.ALLOWED_HOSTS = ["testserver"]
        begun = time.monotonic()
        if not User.objects.exists():
            fill(options.sessions, options.readings)
        print(f"{options.kind}: {counts()}, filled in {time.monotonic() - begun:.0f} s", flush=True)
        there = opened()
        freeze_loaded()  # as `serve` does
        chosen = [item for item in pages(there).items() if options.only in item[0]]
        over = sum(_row(name, *page, options.requests, there.full) for name, page in chosen)
    print(f"{over} over {LIMIT_MS:.0f} ms at p95 or {MOST_QUERIES} queries")
    return 1 if over else 0


def counts() -> str:
    from webapp.records.models import DiagnosisSession, Entry, Event, StoredReading

    models = (DiagnosisSession, StoredReading, Entry, Event)
    return ", ".join(f"{m.objects.count():,} {m._meta.verbose_name_plural}" for m in models)


def _row(name: str, user: Any, address: Callable[[int], str], requests: int, full: dict[str, Any]) -> bool:
    took, cpu, queries = measure(user, address, requests, full)
    p50, p95 = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    over = p95 >= LIMIT_MS or queries > MOST_QUERIES
    timings = f"p50 {p50:7.1f} ms  p95 {p95:7.1f} ms  CPU {statistics.fmean(cpu):6.1f} ms"
    print(f"{name:42} {timings}  {queries:3} queries{'  OVER' * over}", flush=True)
    return over


if __name__ == "__main__":
    sys.exit(main())
