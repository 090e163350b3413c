"""What is hidden is counted in what leaves, and told again wherever it goes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open
from webapp.review.bundle.export import bundle
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import open_bundle
from webapp.review.bundle.redacted import shareable
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


def with_tampered_report(raw: bytes, report: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts_of(raw).items():
            archive.writestr(name, report if name == "redaction.json" else data)
    return buffer.getvalue()


def test_nothing_that_is_hidden_is_in_the_file(session: DiagnosisSession) -> None:
    raw = shareable(session)
    gone = b"".join(parts_of(raw).values())
    for secret in (b"gpuvm17", b"10.9.8.7", b"10.77.0.1", b"10.1.2.3", b"alice"):
        assert secret not in gone
    hidden = counts(told(raw))
    assert (hidden["host_name"] >= 4, hidden["ip_address"] >= 5) == (True, True)


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
