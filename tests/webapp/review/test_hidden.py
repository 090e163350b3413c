"""What is hidden is told before a session leaves, counted in what leaves, and told again wherever it goes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.pages import html_of
from tests.webapp.addresses import asked_in
from webapp.accounts.models import User
from webapp.handoff.models import Link
from webapp.records import intake
from webapp.records.models import Assignment, DiagnosisSession, Run, Target
from webapp.records.models.link import NOBODY
from webapp.records.sessions import session_open
from webapp.review.bundle import preview as previews
from webapp.review.bundle.export import bundle
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import open_bundle
from webapp.review.bundle.preview import Preview, preview
from webapp.review.bundle.redacted import shareable
from webapp.review.models import Approval, Decision, RecordVersion
from webapp.review.threads import comment_add

pytestmark = pytest.mark.django_db

ROUTE = b"root@gpuvm17:~# ip route\ndefault via 10.9.8.7 dev eth0\n"
LOG = b"gpuvm17:701:702 [0] NCCL INFO NET/Socket : Using [0]eth0:10.9.8.7<0>\n"


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    """Two outputs and a comment; the name of the first output's file is a secret, too."""
    session = session_open(owner=alice, title="slow on gpuvm17")
    intake.take_text(session, ROUTE, user=alice, label="gpuvm17/route.txt")
    taken = intake.take_text(session, LOG, user=alice, label="nccl.log")
    type(taken.evidence).objects.filter(pk=taken.evidence.pk).update(
        stderr=b"ssh: connect to 10.9.8.7\nssh: connect to 10.77.0.1\n"
    )
    comment_add(session, author=alice, text="gpuvm17 is at 10.1.2.3, says alice")
    return session


def parts_of(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def told(raw: bytes) -> list[dict[str, Any]]:
    report: list[dict[str, Any]] = json.loads(parts_of(raw)["redaction.json"])
    return report


def counts(report: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in report:
        found[one["kind"]] = found.get(one["kind"], 0) + one["count"]
    return found


def by_rule(found: Preview) -> dict[str, int]:
    return {rule.kind: rule.places for rule in found.rules}


def with_tampered_report(raw: bytes, report: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts_of(raw).items():
            archive.writestr(name, report if name == "redaction.json" else data)
    return buffer.getvalue()


def test_the_preview_counts_what_the_file_says_it_hid(session: DiagnosisSession) -> None:
    found = preview(session, everything=False)
    assert found.whole
    raw = shareable(session)
    assert by_rule(found) == counts(told(raw))
    gone = b"".join(parts_of(raw).values())
    shown = [secret for rule in found.rules for _, secret in rule.words]
    assert {"gpuvm17", "10.9.8.7", "10.77.0.1", "10.1.2.3", "alice"} <= set(shown)
    assert not [secret for secret in shown if secret.encode() in gone]
    for word, _ in (pair for rule in found.rules for pair in rule.words):
        assert word.encode() in gone


def of_each_output(report: list[dict[str, Any]]) -> dict[int, tuple[dict[str, int], str, bool]]:
    """Number of the output -> how often each kind is hidden there, in which lines of what it printed, and
    whether on its standard error."""
    found: dict[int, tuple[dict[str, int], str, bool]] = {}
    for number in sorted({one["evidence"] for one in report if "evidence" in one}):
        here = [one for one in report if one.get("evidence") == number]
        lines = {line for one in here if "stream" not in one for line in one["lines"]}
        errors = any("stream" in one for one in here)
        found[number] = (counts(here), ",".join(map(str, sorted(lines))), errors)
    return found


def test_the_preview_is_the_files_own_report(session: DiagnosisSession, alice: User, bob: User) -> None:
    """Output by output, with everything in the session that a person can say."""
    much_said(session, alice, bob)
    with CaptureQueriesContext(connection) as queries:
        found = preview(session, everything=False)
    assert asked_in(queries) <= 7  # every page of a session asks three
    report = told(shareable(session))
    assert by_rule(found) == counts(report)
    assert dict(found.own) == counts([one for one in report if "evidence" not in one])
    numbers = {pk: n for n, pk in enumerate(session.evidence.values_list("pk", flat=True))}
    rows = {numbers[r.evidence.pk]: (dict(r.kinds), r.lines, r.errors) for r in found.rows}
    assert rows == of_each_output(report)
    assert {"bob", "carla", "dora"} <= {word for rule in found.rules for _, word in rule.words}
    record = json.loads(parts_of(bundle(session))["session.json"])
    assert [len(output["assignments"]) for output in record["evidence"]] == [2, 0]
    said = [[(word["by"], word["label"]) for word in d["approvals"]] for d in record["decisions"]]
    assert said == [[("bob", ""), ("", "carla")], []]


def much_said(session: DiagnosisSession, alice: User, bob: User) -> None:
    first = session.evidence.earliest("pk")
    for reader in ("guest.routes", ""):
        Assignment.objects.create(evidence=first, first=1, last=2, reader=reader, created_by=bob)
    for person in (NOBODY, "dora"):
        Link.make(session, made_by=alice, person=person, purpose="why", hours=1, phases=[])
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="gpuvm17", user="root", created_by=bob
    )
    run = Run.objects.create(session=session, target=target, number=1, kind="probes", state="failed", created_by=bob)
    session.evidence.filter(pk=first.pk).update(run=run)
    one = Decision.objects.create(
        session=session, number=1, title="for dora", reason="10.9.8.7 is slow", proposed_by=alice
    )
    Decision.objects.create(session=session, number=2, title="again", proposed_by=bob, supersedes=one)
    for by, label in ((bob, ""), (None, "carla")):
        Approval.objects.create(decision=one, word="approved", reason="gpuvm17", by=by, label=label)
    for number in (1, 2):
        RecordVersion.objects.create(
            decision=one, number=number, content=one.content.columns, content_sha256="", proposed_by=bob
        )


def test_a_person_who_is_a_user_of_the_machine_too_has_both_words(session: DiagnosisSession, alice: User) -> None:
    intake.take_text(session, b"alice@gpuvm17:~$ uname -r\n6.8.0\n", user=alice)
    rules = {rule.kind: rule for rule in preview(session, everything=True).rules}
    assert [word for word, secret in rules["user_name"].words if secret == "alice"]
    assert ("person 1", "alice") in rules["person"].words


def test_the_report_names_outputs_and_standard_error_and_own_texts(session: DiagnosisSession) -> None:
    report = told(shareable(session))
    assert {one.get("label") for one in report} == {"<host-1>/route.txt", "nccl.log", None}
    (errors,) = [one for one in report if one.get("stream") == "stderr"]
    assert (errors["evidence"], errors["kind"], errors["lines"]) == (1, "ip_address", [1, 2])
    own = {one["kind"]: one["count"] for one in report if "evidence" not in one}
    assert own["ip_address"] == 1
    assert own["person"] >= 4  # the owner, who gave both outputs, the author, and the text itself


def test_a_redacted_bundle_goes_through_another_instance_unchanged(session: DiagnosisSession, alice: User) -> None:
    raw = shareable(session)
    assert bundle(open_bundle(raw, user=alice).session) == raw


def test_the_first_report_is_told_again(session: DiagnosisSession, alice: User) -> None:
    first = told(shareable(session))
    opened = open_bundle(shareable(session), user=alice).session
    again = counts(told(shareable(opened)))
    assert {kind: again[kind] for kind in counts(first) if kind != "person"} == {
        kind: count for kind, count in counts(first).items() if kind != "person"
    }
    intake.take_text(opened, b"default via 10.55.0.1 dev eth0\n", user=alice, label="later")
    then = told(shareable(opened))
    assert counts(then)["ip_address"] == counts(first)["ip_address"] + 1
    assert {"<host-1>/route.txt", "later"} <= {one.get("label") for one in then}
    assert dict(preview(opened, everything=True).before) == counts(first)
    manifest = json.loads(parts_of(bundle(opened))["manifest.json"])
    assert not manifest["redacted"]  # something was added to it that nobody redacted
    whole = bundle(opened)
    opened.delete()
    assert bundle(open_bundle(whole, user=alice).session) == whole


@pytest.mark.parametrize("report", [b"{}", b'[{"kind": "x", "count": 1, "evidence": 7}]'])
def test_a_report_of_other_outputs_is_refused(session: DiagnosisSession, alice: User, report: bytes) -> None:
    with pytest.raises(BundleError, match=r"redaction\.json"):
        open_bundle(with_tampered_report(shareable(session), report), user=alice)
    assert DiagnosisSession.objects.count() == 1


def test_a_bundle_from_before_labels_is_opened(session: DiagnosisSession, alice: User) -> None:
    old = b'[\n {\n  "count": 2,\n  "evidence": 0,\n  "kind": "host_name",\n  "lines": [\n   1\n  ]\n }\n]\n'
    opened = open_bundle(with_tampered_report(shareable(session), old), user=alice).session
    assert parts_of(bundle(opened))["redaction.json"] == old


def test_what_is_long_is_counted_only_when_asked_for(
    session: DiagnosisSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_BYTES", 500)
    intake.take_text(session, b"root@late:~# ls\n" + b"x\n" * 400, user=alice, label="long")
    found = preview(session, everything=False)
    assert (found.counted, found.total, found.whole) == (2, 3, False)
    browser = Client()
    browser.force_login(alice)
    page = html_of(browser.get(f"/sessions/{session.pk}/hidden"))
    assert "first 2 of 3 outputs" in page
    assert "Counted in all 3 outputs" in (html_of(browser.get(f"/sessions/{session.pk}/hidden?all=1")))
    monkeypatch.setattr(previews, "MOST_BYTES", 9)
    page_of_none = html_of(browser.get(f"/sessions/{session.pk}/hidden"))
    assert "none of 3 outputs" in page_of_none
    assert by_rule(preview(session, everything=True)) == counts(told(shareable(session)))


def test_the_page_links_each_output_and_shows_no_password(session: DiagnosisSession, alice: User) -> None:
    given = intake.take_text(session, b"# api_key: hunter2hunter2\n", user=alice, label="env")
    browser = Client()
    browser.force_login(alice)
    summary = html_of(browser.get(f"/sessions/{session.pk}/summary"))
    assert f'href="/sessions/{session.pk}/hidden"' in summary
    page = html_of(browser.get(f"/sessions/{session.pk}/hidden"))
    assert f"/evidence/{given.evidence.name}?line=1" in page
    assert "&lt;credential-1&gt;" in page
    assert "hunter2" not in page
    part = browser.get(f"/sessions/{session.pk}/hidden", headers={"HX-Request": "true"})
    assert b"&lt;credential-1&gt;" in part.content
    assert b"<html" not in part.content
    browser.force_login(User.objects.create_user("eve"))
    assert browser.get(f"/sessions/{session.pk}/hidden").status_code == 404
