"""Health and metrics: who gets an answer, and whether it is the truth."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from tests.evidence_store import EvidenceStore
from tests.pages import html_of
from webapp.accounts.models import ApiToken, User
from webapp.config import addresses, environment
from webapp.config.bootstrap import ROOT
from webapp.operations import evidence_storage, health
from webapp.records import intake
from webapp.records.models import DiagnosisSession, Run, StoredReading, Target
from webapp.runs import lifecycle

pytestmark = pytest.mark.django_db
on_sqlite = pytest.mark.skipif(not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite's own")
REDIS = "redis://:a-secret-password@127.0.0.1:9/0"


def test_live_asks_nobody(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert client.get("/healthz/live").status_code == 200


def test_ready_looks_at_database_migrations_broker_and_storage(client: Client) -> None:
    answer = client.get("/healthz/ready")
    assert answer.status_code == 200
    parts = ("database", "migrations", "broker", "storage")
    assert answer.json() == {"ready": True, "degraded": False, "checks": dict.fromkeys(parts, "ok")}
    assert ("peerpath_evidence_storage_up",) not in figures(client), "there is none to be up"


def test_a_broker_out_of_reach_is_said_without_its_address(client: Client, settings: Any) -> None:
    settings.EMBEDDED_WORKER, settings.REDIS_URL = False, REDIS
    answer = client.get("/healthz/ready")
    assert answer.status_code == 503
    assert answer.json()["checks"]["broker"] == "out of reach"
    assert "127.0.0.1" not in html_of(answer)
    assert "password" not in html_of(answer)


@on_sqlite
def test_a_disk_with_no_room_for_the_database_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LEAST_FREE_MIB", 1 << 40)
    answer = client.get("/healthz/ready")
    assert answer.status_code == 503
    assert re.fullmatch(r"\d+ MiB are left on its disk", answer.json()["checks"]["database"])


@on_sqlite
def test_a_database_that_takes_nothing_shows_what_it_has(session_of_alice: DiagnosisSession, alice: User) -> None:
    """As on a full disk. Who sent something is told that it was not kept."""
    browser = Client(raise_request_exception=False)
    browser.force_login(alice)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = 1")
    try:
        for page in ("guest", "diagnosis", "decide"):
            assert browser.get(f"/sessions/{session_of_alice.pk}/{page}").status_code == 200
        sent = browser.post(f"/sessions/{session_of_alice.pk}/paste/guest", {"text": "uname -r"})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = 0")
    assert sent.status_code == 503
    assert "send it again" in html_of(sent)


def storage_of(client: Client) -> str:
    """What `ready` says of it; the web stays ready whatever that is."""
    answer = client.get("/healthz/ready")
    said = answer.json()
    assert (answer.status_code, said["ready"]) == (200, True)
    state = str(said["checks"]["storage"])
    assert said["degraded"] is (state != "ok")
    assert figures(client)["peerpath_evidence_storage_up",] == (state == "ok")
    return state


def test_a_storage_that_is_away_degrades_and_is_found_again(
    client: Client, store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert storage_of(client) == "ok"
    store.stop()
    assert storage_of(client) == "ok", "the answer is good for some seconds"
    monkeypatch.setattr(evidence_storage, "KEPT_S", 0.0)
    assert storage_of(client).startswith("unusable: ")
    call_command("ready")
    store.start()
    assert storage_of(client) == "ok"
    assert store.names == ["ready"]


class Silent(FileSystemStorage):
    """Holds who asks it, as a file server that is gone does."""

    back: ClassVar[threading.Event] = threading.Event()

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        self.back.wait(60)
        return super().save(name, content, max_length)


def test_a_storage_that_says_nothing_is_not_waited_for(
    client: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_storage, "WAIT_S", 1.0)
    outside = {"BACKEND": f"{Silent.__module__}.Silent", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = settings.STORAGES | {"evidence": outside}
    try:
        moments = [time.monotonic()]
        for _ in range(5):
            assert storage_of(client) == "no answer"
            moments.append(time.monotonic())
        first, *others = (after - before for before, after in pairwise(moments))
        assert sorted(others)[1] < first / 2, "one question is open, and nobody waits for it twice"
        asking = [thread for thread in threading.enumerate() if thread.name == "evidence storage"]
        assert len(asking) == 1
    finally:
        Silent.back.set()


def test_a_folder_that_takes_nothing_is_said_without_its_name(client: Client, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("no folder")
    settings.STORAGES = settings.STORAGES | addresses.storage(f"file://{tmp_path}/evidence")
    assert storage_of(client) == "unusable: File exists"


def gone(*_: Any) -> None:
    raise OperationalError("server closed the connection unexpectedly")


def test_while_the_database_is_away_people_and_programs_are_told_to_come_back(alice: User) -> None:
    token = ApiToken.make(alice, name="t", scopes=["read"], days=1)[1]
    browser = Client(raise_request_exception=False)
    browser.force_login(alice)
    bearer = {"authorization": f"Bearer {token}"}
    with connection.execute_wrapper(gone):
        page = browser.get("/")
        answer = browser.get("/api/v1/me", headers=bearer)
    assert page.status_code == answer.status_code == 503
    assert "cannot use its database" in html_of(page)
    assert page.headers["Retry-After"] == "10"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "database" in answer.json()["detail"]


@pytest.mark.service
def test_a_database_that_takes_connections_and_says_nothing_is_soon_out_of_reach() -> None:
    """As one that is frozen, or whose disk hangs: whoever asks must not wait with it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://peer@127.0.0.1:{silent.getsockname()[1]}/cases"
        done = subprocess.run(
            [sys.executable, "manage.py", "ready"],
            cwd=ROOT,
            env=os.environ | {"PEERPATH_DATABASE_URL": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "database: out of reach, migrations: not looked at" in done.stderr


def figures(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    """Name and label values -> figure, read by Prometheus's own parser."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    families = text_string_to_metric_families(html_of(answer))
    samples = (sample for family in families for sample in family.samples)
    return {(s.name, *s.labels.values()): s.value for s in samples}


def test_what_is_stuck_and_what_failed_is_counted(
    client: Client, session_of_alice: DiagnosisSession, alice: User
) -> None:
    target = Target.objects.create(
        session=session_of_alice, role="guest", agent="ssh", host="192.0.2.1", created_by=alice
    )
    now = timezone.now()
    about: dict[str, Any] = {"session": session_of_alice, "target": target, "created_by": alice}
    silent = Run.objects.create(number=1, kind="probes", state="running", **about)
    waiting = Run.objects.create(number=2, kind="probes", state="queued", **about)
    Run.objects.filter(pk=silent.pk).update(lease_expires_at=now - timedelta(seconds=90))
    Run.objects.filter(pk=waiting.pk).update(created_at=now - timedelta(seconds=90))
    Run.objects.create(number=3, kind="probes", state="failed", failure="HostKeyChanged", **about)
    found = figures(client)
    assert found["peerpath_runs", "running"] == 1
    assert found["peerpath_runs", "succeeded"] == 0
    assert 90 <= found["peerpath_queue_oldest_seconds",] < 120
    assert found["peerpath_expired_leases",] == 1
    assert found["peerpath_run_failures", "HostKeyChanged"] == 1

    lifecycle.expire_leases(now)
    found = figures(client)
    assert found["peerpath_expired_leases",] == 0
    assert found["peerpath_run_failures", "LeaseExpired"] == 1


def test_unreadable_answers_follow_the_evidence(
    client: Client, session_of_alice: DiagnosisSession, alice: User
) -> None:
    taken = intake.take_text(session_of_alice, b"$ uname -r\n6.8.0\n", user=alice)
    StoredReading.objects.create(evidence=taken.evidence, fact_id="guest.topology", kind="unreadable", reader="x")
    assert figures(client)["peerpath_unreadable_readings", "guest.topology"] == 1


@pytest.mark.parametrize(
    ("token", "headers", "address", "status"),
    [
        ("", {}, "127.0.0.1", 200),
        ("", {}, "192.0.2.7", 403),
        ("", {"X-Forwarded-For": "127.0.0.1"}, "127.0.0.1", 403),
        ("the-token", {}, "127.0.0.1", 403),
        ("the-token", {"Authorization": "Bearer the-tokem"}, "127.0.0.1", 403),
        ("the-token", {"Authorization": "Bearer the-token"}, "192.0.2.7", 200),
    ],
)
def test_metrics_are_for_the_bearer_of_the_token_or_for_this_machine(
    client: Client, settings: Any, token: str, headers: dict[str, str], address: str, status: int
) -> None:
    settings.METRICS_TOKEN = token
    answer = client.get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert answer.status_code == status


@pytest.mark.parametrize("believed", [True, False])
def test_the_clients_address_is_the_one_that_the_proxy_wrote(client: Client, settings: Any, believed: bool) -> None:
    """Whoever invents one puts it before the proxy's own."""
    settings.BEHIND_PROXY = believed
    for _ in range(6):
        form = {"username": "mallory", "password": "guessed-again"}
        refused = client.post("/sign-in", form, headers={"X-Forwarded-For": "203.0.113.5, 192.0.2.9"})
    assert refused.status_code == 429
    form = {"username": "mallory", "password": "guessed-again"}
    other = client.post("/sign-in", form, headers={"X-Forwarded-For": "203.0.113.5, 192.0.2.10"})
    assert other.status_code == (403 if believed else 429)


def test_an_address_without_a_host_is_a_sentence() -> None:
    with pytest.raises(ImproperlyConfigured, match="must start with https:// or http://"):
        environment.read({"PEERPATH_PUBLIC_URL": "peerpath.example"})
