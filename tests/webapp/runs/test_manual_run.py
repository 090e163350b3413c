"""Measuring without ssh: the page gives the program and the lines, and takes back what they bring."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.benchmark import all_benchmarks
from agents.facts.bench import PROFILE
from tests.agents.payloads.engine_server import Engine, serving
from tests.agents.payloads.test_engine_profile import trace
from tests.pages import html_of
from tests.webapp.conftest import gpu_vm
from webapp.accounts.models import User
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession
from webapp.runs.benchmark_options import offers
from webapp.runs.manual_run import recordings

pytestmark = pytest.mark.django_db
SHIPPED = [b.id for b in all_benchmarks().values() if b.payload]


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def address(session: DiagnosisSession, page: str) -> str:
    return f"/sessions/{session.pk}/{page}"


@pytest.mark.parametrize("name", SHIPPED)
def test_each_program_is_a_file_whose_hash_stands_beside_it(
    browser: Client, session_of_alice: DiagnosisSession, name: str
) -> None:
    page = html_of(browser.get(address(session_of_alice, "path")))
    given = browser.get(address(session_of_alice, f"program/{name}"))
    assert hashlib.sha256(given.content).hexdigest() in page
    assert "attachment" in given["Content-Disposition"]


def test_there_is_no_program_for_a_reader_of_tables(browser: Client, session_of_alice: DiagnosisSession) -> None:
    answer = browser.get(address(session_of_alice, "program/bench.nccl_tests"))
    assert answer.status_code == 404
    assert browser.get(address(session_of_alice, "program/manage.py")).status_code == 404


def test_with_ssh_the_way_by_hand_is_there_and_folded(
    browser: Client, session_of_alice: DiagnosisSession, alice: User
) -> None:
    without = html_of(browser.get(address(session_of_alice, "path")))
    gpu_vm(session_of_alice, alice)
    beside = html_of(browser.get(address(session_of_alice, "path")))
    assert without.count('<details class="hand" open>') == len(SHIPPED)
    assert beside.count('<details class="hand">') == len(SHIPPED)


@pytest.mark.thorough
def test_the_line_on_the_page_brings_what_the_page_reads(
    browser: Client, session_of_alice: DiagnosisSession, tmp_path: Path
) -> None:
    offer = next(o for o in offers(facts_of(session_of_alice)) if o.benchmark.id == "bench.engine_profile")
    assert offer.by_hand
    given = browser.get(address(session_of_alice, "program/bench.engine_profile"))
    (tmp_path / offer.by_hand.file).write_bytes(given.content)
    with serving(Engine(trace=trace(6), step_s=0.01)) as engine:
        line = offer.by_hand.line.replace("python3", shlex.quote(sys.executable), 1)
        line = line.replace(" > ", f" --url {engine.url} --steps 5 > ")
        # As in a terminal, its standard input stays open.
        with subprocess.Popen(["sh", "-c", line], cwd=tmp_path, stdin=subprocess.PIPE) as terminal:
            assert terminal.wait(60) == 0
    text = (tmp_path / offer.by_hand.output).read_text()
    browser.post(address(session_of_alice, "paste/path"), {"text": text})
    profile = facts_of(session_of_alice).value(PROFILE)
    assert profile is not None
    assert profile.nccl_ms == pytest.approx(0.12)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_the_curl_lines_record_a_trace_under_load(
    browser: Client, session_of_alice: DiagnosisSession, tmp_path: Path, number: int
) -> None:
    made = recordings()[number]
    lands = tmp_path / "traces"
    server = Engine(trace=trace(6), step_s=0.01, hides=lands)
    with serving(server) as engine:
        here = replace(made, lines=made.lines.replace(made.lands, str(lands)))
        first, _, rest = here.lines.partition("\n")
        assert first.startswith("E=http://127.0.0.1:")  # host:port is all that anybody fills in
        quick = rest.replace("sleep 3", "sleep 0.3").replace("sleep 2", "sleep 0.2")
        lines = f"E={engine.url}\n{quick}"
        subprocess.run(["sh", "-c", lines], check=True, timeout=60, capture_output=True)
    assert engine.asked[0] == "/v1/completions"
    assert engine.asked[-2:] == ["/start_profile", "/stop_profile"]
    found = next(lands.glob("*TP-0*.json.gz"))
    upload = SimpleUploadedFile(found.name, found.read_bytes())
    browser.post(address(session_of_alice, "paste/path"), {"text": "", "file": upload})
    assert facts_of(session_of_alice).value(PROFILE) is not None
