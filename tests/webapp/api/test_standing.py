"""Where a session stands, by a program: what its pages say, from the same functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents.probes import all_probes
from tests.webapp.api.conftest import ROOT, Program
from webapp.accounts.models import User
from webapp.triage import intake
from webapp.triage.models import DiagnosisSession
from webapp.triage.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@after", owner=alice)


def read(program: Callable[..., Program], session: DiagnosisSession, what: str) -> Any:
    answer = program(session.owner, "read")("GET", f"/sessions/{session.pk}/{what}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def page(session: DiagnosisSession, what: str) -> str:
    browser = Client()
    browser.force_login(session.owner)
    return browser.get(f"/sessions/{session.pk}/{what}").content.decode()


def test_the_next_act_is_the_one_that_the_page_names(
    session: DiagnosisSession, program: Callable[..., Program]
) -> None:
    found = read(program, session, "standing")
    shown = page(session, "diagnosis")
    for one in (found["next"], *found["also"]):
        assert one["text"].replace("'", "&#x27;") in shown
        assert one["page"] in shown.replace("&amp;", "&")
    assert found["rests"]["the host"] is True
    done = {one["id"]: one["done"] for one in found["steps"]}
    assert next(iter(done)) == "symptom"
    assert (done["guest"], done["verify"]) == (True, False)


def test_the_pivot_names_what_changed_which_verdict(session: DiagnosisSession, program: Callable[..., Program]) -> None:
    found = read(program, session, "moments")
    changes = {(change["subject"], change["after"]) for moment in found for change in moment["changes"]}
    assert ("p2p_denied_no_clique", "supported") in changes
    assert found[0]["at"] <= found[-1]["at"]
    assert found[0]["headline"] != found[-1]["headline"]


def test_the_words_for_a_manager_are_the_pages(session: DiagnosisSession, program: Callable[..., Program]) -> None:
    found = read(program, session, "summary")
    assert found["manager"][:60].replace("'", "&#x27;") in page(session, "summary")
    claims = [claim for section in found["engineer"] for claim in section["claims"]]
    assert claims
    assert all(claim["evidence"] or claim["basis"] == "literature" for claim in claims)


@pytest.mark.parametrize("file", ["two_h200.jsonl", "two_h200_allreduce.jsonl"])
def test_each_figure_stands_beside_its_baseline(
    session_of_alice: DiagnosisSession, alice: User, program: Callable[..., Program], file: str
) -> None:
    text = (ROOT / "tests" / "agents" / "payloads" / file).read_bytes()
    name = intake.take_text(session_of_alice, text, user=alice).evidence.name
    found = read(program, session_of_alice, "figures")
    assert found
    for one in found:
        assert (one["standing"] == "no baseline known") == (one["expected"] is None)
        assert one["low"] <= one["value"] <= one["high"]
        assert {ref["source"] for ref in one["evidence"]} == {name}


def test_every_probe_is_listed_with_its_commands(alice: User, program: Callable[..., Program]) -> None:
    found = {one["id"]: one for one in program(alice, "read")("GET", "/probes").json()}
    assert found.keys() == all_probes().keys()
    memory = found["guest.memory"]
    assert "/proc/meminfo" in " ".join(command["command"] for command in memory["commands"])
    assert memory["facts"] == ["guest.memory_mib"]


def test_who_took_a_script_is_listed(session: DiagnosisSession, alice: User, program: Callable[..., Program]) -> None:
    assert read(program, session, "downloads")["items"] == []
    page(session, "script/host")
    (taken,) = read(program, session, "downloads")["items"]
    assert taken["who"] == "alice"
    (script,) = read(program, session, "scripts")["items"]
    assert taken["sha256"] == script["sha256"]
    assert read(program, session, "plan/by-hand") == []  # Proxmox has a script for it
