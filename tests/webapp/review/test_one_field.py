"""A text of a decision is declared once: what is declared is written, shown, compared, searched and carried."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from webapp.accounts.models import ApiToken, Scope, User
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Entry
from webapp.review.bundle.export import bundle
from webapp.review.bundle.format import BundleError
from webapp.review.bundle.importing import open_bundle
from webapp.review.bundle.rows import decoded_text
from webapp.review.decision_fields import HASHED_FIRST, TEXTS, DecisionContent, Wording
from webapp.review.decisions import decision_draft, draft_save
from webapp.review.digests import digest_refresh
from webapp.review.madr import as_markdown
from webapp.review.models import Decision
from webapp.review.versions import differences
from webapp.review.workflow import decision_propose, decision_withdraw
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
WORDS = {name: f"Words{place} of it" for place, name in enumerate(TEXTS)}


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery")


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


def worded(texts: Mapping[str, Any]) -> Wording:
    return Wording(chosen=("gpudirect_clique",), **texts)


@pytest.fixture
def decision(session: DiagnosisSession, alice: User) -> Decision:
    """Proposed twice: with words in every text, and each of them other words than before."""
    result = session_diagnosis(session)
    first = worded(dict.fromkeys(TEXTS, "before"))
    made = decision_draft(session, user=alice, wording=first, result=result)
    decision_propose(made, user=alice)
    decision_withdraw(made, user=alice)
    now = worded(WORDS)
    draft_save(made, user=alice, version=made.version, wording=now, result=result)
    decision_propose(made, user=alice)
    return made


@dataclass(frozen=True, kw_only=True)
class ContentWithOneMore(DecisionContent):
    """As it is once somebody declares a text more, wherever it is declared."""

    untested: str = ""


@pytest.mark.parametrize("passed_over", ["", "It needs a restart."])
def test_a_record_from_before_a_text_was_declared_keeps_its_hash(decision: Decision, passed_over: str) -> None:
    columns = decision.content.columns | dict.fromkeys(TEXTS.keys() - set(HASHED_FIRST), "")
    columns |= {"passed_over": passed_over}
    before = [columns[name] for name in HASHED_FIRST] + [passed_over] * bool(passed_over)
    expected = hashlib.sha256(json.dumps(before, sort_keys=True).encode()).hexdigest()
    assert DecisionContent(**columns).sha256 == expected
    assert ContentWithOneMore(**columns).sha256 == expected


def test_every_text_is_part_of_what_is_approved(decision: Decision) -> None:
    columns = decision.content.columns
    hashes = {DecisionContent(**columns | {name: "other words"}).sha256 for name in TEXTS}
    hashes |= {ContentWithOneMore(**columns, untested="other words").sha256, DecisionContent(**columns).sha256}
    assert len(hashes) == len(TEXTS) + 2


def test_a_bundle_from_before_a_text_was_declared_is_opened(decision: Decision) -> None:
    plain = {name: value for name, value in decision.content.columns.items() if name != "passed_over"}
    assert decoded_text(json.dumps(plain).encode(), "a test", DecisionContent).passed_over == ""
    with pytest.raises(BundleError, match="does not know"):
        decoded_text(json.dumps({**plain, "unheard": 1}).encode(), "a test", DecisionContent)


def test_few_files_name_a_text() -> None:
    """CONTRIBUTING.md promises it: at most three product files and one template."""
    named = re.compile(r"\bpassed_over\b")
    product = [p for p in (ROOT / "webapp").rglob("*.py") if "migrations" not in p.parts]
    templates = list((ROOT / "templates").rglob("*.html"))
    assert "passed_over" in TEXTS
    assert sum(bool(named.search(p.read_text())) for p in product) <= 3
    assert sum(bool(named.search(p.read_text())) for p in templates) <= 1


def test_every_text_is_on_the_pages_and_in_the_form(decision: Decision, alice: User, client: Client) -> None:
    client.force_login(alice)
    here = f"/sessions/{decision.session_id}"
    for address in (f"{here}/decisions/1", f"{here}/decide?draft=1", f"{here}/decisions/1/versions?from=1&to=2"):
        page = client.get(address).content.decode()
        assert not [name for name, words in WORDS.items() if words not in page], address


def test_every_text_is_typed_in_the_form(session: DiagnosisSession, alice: User, client: Client) -> None:
    client.force_login(alice)
    typed = {**WORDS, "chosen": ["gpudirect_clique"], "then": "keep"}
    client.post(f"/sessions/{session.pk}/decide", typed)
    made = session.decisions.get()
    assert {name: getattr(made, name) for name in TEXTS} == WORDS


def test_what_is_too_long_is_refused(session: DiagnosisSession, alice: User, client: Client) -> None:
    client.force_login(alice)
    for name, text in TEXTS.items():
        typed = {**WORDS, name: "x" * (text.longest + 1), "chosen": ["gpudirect_clique"]}
        page = client.post(f"/sessions/{session.pk}/decide", typed)
        assert page.status_code == 422, name
    assert not session.decisions.exists()


def test_every_text_is_compared_exported_and_found(decision: Decision) -> None:
    before, after = decision.versions.all()
    assert set(WORDS.values()) <= {difference.after for difference in differences(before, after)}
    markdown = as_markdown(decision)
    assert not [name for name, words in WORDS.items() if words not in markdown]
    digest_refresh(decision.session)
    found = Entry.objects.get(session=decision.session, kind="decision").words
    assert not [name for name, words in WORDS.items() if words.split()[0].lower() not in found]


def test_every_text_is_of_what_is_approved(decision: Decision) -> None:
    for name in TEXTS:
        other = Decision(**{**decision.content.columns, name: "other words"})
        assert other.content_sha256 != decision.content_sha256, name


def test_a_bundle_carries_every_text(decision: Decision, alice: User) -> None:
    session, raw = decision.session, bundle(decision.session)
    session.decisions.all().delete()
    session.delete()
    opened = open_bundle(raw, user=alice).session.decisions.get()
    assert {name: getattr(opened, name) for name in TEXTS} == WORDS
    assert opened.content_sha256 == decision.content_sha256


def test_a_program_writes_and_reads_every_text(session: DiagnosisSession, alice: User, client: Client) -> None:
    token = ApiToken.make(alice, name="a test", scopes=list(Scope.values), days=1)[1]
    headers = {"authorization": f"Bearer {token}"}
    address, draft = f"/api/v1/sessions/{session.pk}/decisions", {**WORDS, "chosen": ["gpudirect_clique"]}
    made = client.post(address, json.dumps(draft), content_type="application/json", headers=headers)
    assert made.status_code == 201
    answer = client.get(f"{address}/1", headers=headers).json()
    assert {name: answer[name] for name in TEXTS} == WORDS
    for name, text in TEXTS.items():
        body = json.dumps({**draft, name: "x" * (text.longest + 1)})
        assert client.post(address, body, content_type="application/json", headers=headers).status_code == 422
