"""A database of an earlier version, brought up to date with what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agents.facts.bench import DELIVERY, DeliveryResult
from webapp.triage.case_facts import facts_of
from webapp.triage.digests import digest_refresh
from webapp.triage.models import DiagnosisSession, Evidence, News

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.service]
BEFORE = ("triage", "0006_actor_name")
RAW = b"$ uname -r\n6.8.0\n\xff\x00"
LONG = b"x" * 2**20 + b"\n" + RAW * 40_000


def migrated(*targets: tuple[str, str]) -> Any:
    """The models as they are once these are the last migrations of their apps."""
    MigrationExecutor(connection).migrate(list(targets))
    loader = MigrationExecutor(connection).loader
    return loader.project_state(list(loader.applied_migrations)).apps


@pytest.fixture
def newest() -> Iterator[list[tuple[str, str]]]:
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    yield leaves
    migrated(*leaves)


def test_evidence_of_before_keeps_its_bytes_and_has_its_size(newest: list[tuple[str, str]]) -> None:
    old = migrated(BEFORE)
    owner = old.get_model("accounts", "User").objects.create(username="alice")
    session = old.get_model("triage", "DiagnosisSession").objects.create(title="t", owner=owner)
    made = [
        old.get_model("triage", "Evidence").objects.create(
            session=session, reader="paste", view="", origin="paste", sha256="0" * 64, body=raw
        )
        for raw in (RAW, LONG)
    ]
    migrated(*newest)
    for evidence, raw in zip(made, (RAW, LONG), strict=True):
        found = Evidence.objects.get(pk=evidence.pk)
        assert (found.raw, found.size_bytes) == (raw, len(raw))
        assert found.purged_at is None
    assert found.blocks.count() == 2
    before = migrated(("triage", "0013_visits_of_a_person")).get_model("triage", "Evidence")
    assert [bytes(row.body) for row in before.objects.order_by("pk")] == [RAW, LONG]


def test_a_check_of_bytes_of_before_is_still_read(newest: list[tuple[str, str]]) -> None:
    old = migrated(("triage", "0016_set_aside"))
    owner = old.get_model("accounts", "User").objects.create(username="alice")
    session = old.get_model("triage", "DiagnosisSession").objects.create(title="t", owner=owner)
    evidence = old.get_model("triage", "Evidence").objects.create(
        session=session, reader="bench.delivery", origin="run", sha256="0" * 64, body=b""
    )
    readings = old.get_model("triage", "StoredReading").objects
    said: dict[str, Any] = {"evidence": evidence, "reader": "bench.delivery", "parsed_by": "0"}
    pairs = {"0->1": True, "1->0": False}
    readings.create(fact_id=DELIVERY.id, kind="known", value=pairs, lines=[2], **said)
    readings.create(fact_id=DELIVERY.id, kind="not_run", value=None, detail="one GPU", **said)
    migrated(*newest)
    found = facts_of(DiagnosisSession.objects.get(pk=session.pk)).all(DELIVERY)
    assert [item.reading.value for item in found] == [DeliveryResult(pairs), None]
    before = migrated(("triage", "0016_set_aside")).get_model("triage", "StoredReading")
    assert [row.value for row in before.objects.order_by("pk")] == [pairs, None]


def test_runs_of_before_can_be_found(newest: list[tuple[str, str]]) -> None:
    old = migrated(("triage", "0017_delivery_environment"))
    owner = old.get_model("accounts", "User").objects.create(username="alice")
    model = old.get_model
    at = timezone.now()
    for title, end in (("ran", at), ("runs", None)):
        session = model("triage", "DiagnosisSession").objects.create(title=title, owner=owner)
        target = model("triage", "Target").objects.create(
            session=session, role="guest", agent="local", created_by=owner
        )
        model("triage", "Run").objects.create(
            session=session, target=target, number=1, kind="benchmark", names=["bench.copy"],
            state="failed" if end else "running", ended_at=end, created_by=owner,
        )  # fmt: skip
        for number in (1, 2):
            model("triage", "Event").objects.create(
                session=session, number=number, kind="run_finished", at=at, hash="0" * 64
            )
    migrated(*newest)
    (news,) = News.objects.all()
    assert (news.session.title, news.event.number) == ("ran", 2)
    digest_refresh(news.session)
    assert [e.title for e in news.session.entries.filter(kind="run")] == [
        "Run 1: Copies between the GPUs on this machine"
    ]
