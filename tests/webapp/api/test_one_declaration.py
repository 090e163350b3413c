"""A hypothesis, an option or a rung of the ladder is one file: what it says reaches the headline, the page, the
plain words, the API and the command line with no other file touched."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.html import strip_tags

from agents.facts.gpu import GPU_COUNT_SMI
from tests.pages import html_of
from tests.webapp.api.conftest import Program
from tests.webapp.diagnosis.building import facts_of
from webapp.accounts.models import User
from webapp.diagnosis import catalogue
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.case import VerdictKind
from webapp.diagnosis.diagnosis import diagnose
from webapp.records.models import DiagnosisSession
from webapp.runs.samples import open_sample

HYPOTHESIS = '''"""The engine's shared memory is too small for NCCL's buffers (NCCL manual, shared memory)."""

from __future__ import annotations

from agents.facts.gpu import GPU_COUNT_SMI
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim
from webapp.diagnosis.hypothesis import Hypothesis, Severity
from webapp.diagnosis.missing import probes_for


def assess(case: Case) -> Verdict:
    if case.facts.value(GPU_COUNT_SMI) is None:
        return Verdict(VerdictKind.OPEN, missing=probes_for(case.facts, GPU_COUNT_SMI))
    claim = Claim("/dev/shm holds 64 MiB", case.facts.refs(GPU_COUNT_SMI))
    return Verdict(VerdictKind.SUPPORTED, (claim,))


hypothesis = Hypothesis(
    __name__,
    "The shared memory is too small for the GPUs.",
    assess,
    "“GPUs the driver lists” shows one GPU, which shares nothing.",
    rank=215,
    plain="The software has too little room to hand data from one GPU to another.",
    headline="The engine has 64 MiB of shared memory, which is too small for its GPUs.",
    severity=Severity.SETUP,
    decided_by=("p2p_matrix",),
    first_guess=8,
)
'''
OPTION = '''"""Gives the engine's container more shared memory (Docker manual, --shm-size)."""

from __future__ import annotations

from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because


def judge(case: Case) -> Advice:
    return advise(OptionStatus.RECOMMENDED, because("64 MiB is what Docker gives", "Docker manual"))


option = Option(
    __name__,
    title="Give the container 16 GiB of shared memory",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    isolation_cost="none",
    rollback="start the container as before",
    verified_by="`df /dev/shm` in the container",
    judge=judge,
    by_hand="Start the container with `--shm-size 16g`.",
)
'''
RUNG = '''"""Is there room to share: the shared memory that NCCL needs where P2P is refused (NCCL manual)."""

from __future__ import annotations

from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation

GATE = "room"


def judge(situation: Situation, path: Path) -> Gate:
    return Gate(GATE, path, GateState.FAIL, "/dev/shm holds 64 MiB")


rung = Rung(GATE, judge, place=9, headline="There is no room to share anything.")
'''
HEADLINE = "The engine has 64 MiB of shared memory, which is too small for its GPUs."
CLAIM = "The shared memory is too small for the GPUs."
PLAIN = "The software has too little room to hand data from one GPU to another."
TITLE = "Give the container 16 GiB of shared memory"

Add = Callable[[str, str, str], None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Puts a file into a package of the reasoning; it is gone after the test."""
    names: list[str] = []

    def one(package: str, name: str, text: str) -> None:
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / f"{name}.py").write_text(text)
        module = importlib.import_module(f"webapp.diagnosis.{package}")
        monkeypatch.setattr(module, "__path__", [*module.__path__, str(tmp_path / package)])
        names.append(f"{module.__name__}.{name}")
        importlib.invalidate_caches()
        catalogue.read_again()

    yield one
    monkeypatch.undo()
    for name in names:
        sys.modules.pop(name, None)
        package, _, module = name.rpartition(".")
        if hasattr(sys.modules[package], module):
            delattr(sys.modules[package], module)
    catalogue.read_again()


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


def page(session: DiagnosisSession, step: str) -> str:
    """The text that a reader sees."""
    browser = Client()
    browser.force_login(session.owner)
    answer = browser.get(f"/sessions/{session.pk}/{step}")
    assert answer.status_code == 200
    return " ".join(unescape(strip_tags(html_of(answer))).split())


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    call_command("diagnose", "sample:kpro6@host")
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.django_db
def test_a_new_hypothesis_is_said_everywhere(
    add: Add, session: DiagnosisSession, program: Callable[..., Program], capsys: pytest.CaptureFixture[str]
) -> None:
    assert HEADLINE not in page(session, "diagnosis")
    add("hypotheses", "shm_too_small", HYPOTHESIS)
    assert printed(capsys).startswith(HEADLINE)
    assert CLAIM in printed(capsys)
    shown = page(session, "diagnosis")
    for text in (HEADLINE, CLAIM.rstrip("."), PLAIN, "/dev/shm holds 64 MiB"):
        assert text in shown, text
    assert CLAIM.rstrip(".") in page(session, "hypothesis")
    found = program(session.owner, "read")("GET", f"/sessions/{session.pk}/diagnosis").json()
    assert found["headline"] == HEADLINE
    assert {h["id"]: h["verdict"] for h in found["hypotheses"]}["shm_too_small"] == "supported"
    assert PLAIN in page(session, "summary")


@pytest.mark.django_db
def test_a_new_option_is_advised_everywhere(
    add: Add, session: DiagnosisSession, program: Callable[..., Program], capsys: pytest.CaptureFixture[str]
) -> None:
    assert TITLE not in page(session, "decide")
    add("options", "larger_shm", OPTION)
    assert TITLE in printed(capsys)
    assert TITLE in page(session, "decide")
    plan = page(session, "plan")
    assert TITLE in plan
    assert "Start the container with --shm-size 16g." in plan
    found = program(session.owner, "read")("GET", f"/sessions/{session.pk}/diagnosis").json()
    assert {o["id"]: o["status"] for o in found["options"]}["larger_shm"] == "recommended"


def test_one_without_a_headline_is_said_by_its_claim_where_no_figure_says_more(add: Add) -> None:
    """A supported hypothesis and "not enough evidence" never stand on one page."""
    text = HYPOTHESIS.replace("severity=Severity.SETUP", "severity=Severity.SLOW")
    text = text.replace(f'    headline="{HEADLINE}",\n', "")
    add("hypotheses", "shm_too_small", text)
    result = diagnose(facts_of(GPU_COUNT_SMI.known(2, lines=(1,))))
    assert result.headline == CLAIM
    assert PLAIN in for_a_manager(result)


def test_while_it_is_open_the_tests_that_could_settle_it_say_so(add: Add) -> None:
    add("hypotheses", "shm_too_small", HYPOTHESIS)
    result = diagnose(facts_of())
    assert result.verdicts["shm_too_small"].kind is VerdictKind.OPEN
    assert "shm_too_small" in next(test.decides for test in result.next_tests if test.id == "p2p_matrix")


def test_a_new_rung_is_judged_and_said(add: Add) -> None:
    add("gates", "room", RUNG)
    result = diagnose(facts_of())
    assert [gate.gate for gate in result.ladder][-1] == "room"
    assert result.headline == "There is no room to share anything."
