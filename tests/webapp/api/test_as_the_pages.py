"""What pages narrow, set or read again, a program can, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.api.conftest import Program
from webapp.accounts.models import User
from webapp.records.intake import take_text
from webapp.records.long_text import LONGEST_SHOWN
from webapp.records.models import DiagnosisSession, RunState, Target
from webapp.records.sessions import member_add
from webapp.review.digests import digest_refresh
from webapp.review.models import Decision
from webapp.runs.lifecycle import queue_benchmark, queue_probes
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
VERSION = b"""$ cat /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Jan  7 00:00:00 UTC 2026
"""
LOAD = b"""============ Serving Benchmark Result ============
Successful requests:                     64
Maximum request concurrency:             8
Benchmark duration (s):                  40.00
Total input tokens:                      65536
Total generated tokens:                  16384
Request throughput (req/s):              1.60
Output token throughput (tok/s):         409.60
Total Token throughput (tok/s):          2048.00
Mean TTFT (ms):                          120.00
Mean TPOT (ms):                          18.50
==================================================
"""


def test_decisions_are_narrowed_by_state_and_words(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    for number, (title, state) in enumerate([("Profile", "draft"), ("Clique", "proposed")], 1):
        Decision.objects.create(session=session_of_alice, number=number, title=title, state=state, proposed_by=alice)
    ask, own = program(alice), f"/sessions/{session_of_alice.pk}/decisions"
    told = [d["title"] for d in ask("GET", f"{own}?state=proposed").json()["items"]]
    assert told == ["Clique"]
    told = [d["title"] for d in ask("GET", f"{own}?q=prof").json()["items"]]
    assert told == ["Profile"]
    assert ask("GET", f"{own}?state=agreed").status_code == 422


def test_sessions_and_acts_are_narrowed(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    sample = open_sample("kpro6@host", owner=alice)
    digest_refresh(sample)
    ask = program(alice)
    found = ask("GET", "/sessions?verdict=p2p_denied_no_clique").json()["items"]
    assert [one["id"] for one in found] == [str(sample.pk)]
    assert len(ask("GET", "/sessions").json()["items"]) == 2
    member_add(session_of_alice, user=User.objects.create(username="dora"), added_by=alice)
    path = f"/sessions/{session_of_alice.pk}/events"
    acts = ask("GET", f"{path}?kind=member_added&actor=alice").json()["items"]
    assert [act["data"]["name"] for act in acts] == ["dora"]
    assert ask("GET", f"{path}?actor=dora").json()["items"] == []


def test_one_output_is_read_again_by_itself(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    evidence = take_text(session_of_alice, VERSION, user=alice).evidence
    evidence.readings.all().delete()  # as where its reading was cut short
    ask, path = program(alice), f"/sessions/{session_of_alice.pk}/evidence/{evidence.name}"
    assert ask("POST", f"{path}/reread").json() == {"changed": True}
    assert ask("POST", f"{path}/reread").json() == {"changed": False}
    assert ask("GET", path).json()["readings"]
    assert ask("POST", f"/sessions/{session_of_alice.pk}/evidence/paste@x/reread").status_code == 404


def test_what_was_measured_becomes_what_is_observed(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    ask, path = program(alice), f"/sessions/{session_of_alice.pk}"
    evidence = take_text(session_of_alice, LOAD, user=alice).evidence
    tag = ask("GET", path).headers["ETag"]
    sent = {"evidence": evidence.name}
    now = ask("POST", f"{path}/observed", sent, If_Match=tag)
    assert now.json()["workload"]["observed"] == [
        {"concurrency": 8, "output_tokens_per_s": [409.6, 409.6], "total_tokens_per_s": [2048.0, 2048.0]}
    ]
    assert ask("POST", f"{path}/observed", sent, If_Match=tag).status_code == 412
    tag = now.headers["ETag"]
    assert ask("POST", f"{path}/observed", {"evidence": "x"}, If_Match=tag).status_code == 422


def test_words_are_found_in_the_lines_of_one_output(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    """As many, and the same, as its page says."""
    text = b"\n".join(b"line %d Xid" % n if n % 3 == 0 else b"line %d" % n for n in range(1, 31))
    long_line = b"xid " + b"x" * LONGEST_SHOWN
    evidence = take_text(session_of_alice, text + b"\n" + long_line, user=alice).evidence
    ask, at = program(alice), f"/sessions/{session_of_alice.pk}/evidence/{evidence.name}"
    found: list[Any] = []
    following = ""
    while following is not None:
        page = ask("GET", f"{at}/find?words=xid&limit=3&cursor={following}").json()
        assert len(page["items"]) <= 3
        found += page["items"]
        following = page["next"]
    assert [one["number"] for one in found] == [*range(3, 31, 3), 31]
    assert found[0] == {"number": 3, "text": "line 3 Xid", "cut": 0}
    assert (len(found[-1]["text"]), found[-1]["cut"]) == (LONGEST_SHOWN, 4)
    browser = Client()
    browser.force_login(alice)
    assert f"1 of {len(found)}" in html_of(browser.get(f"{at}?find=xid"))
    assert ask("GET", f"{at}/find?words=none").json() == {"items": [], "next": None}
    for wrong in ("words=", "limit=3", "words=x&cursor=a", "words=x&limit=201"):
        assert ask("GET", f"{at}/find?{wrong}").status_code == 422, wrong
    evidence.purged_at = timezone.now()
    evidence.save(update_fields=["purged_at"])
    assert ask("GET", f"{at}/find?words=xid").status_code == 410


def test_a_run_that_ended_is_made_again_with_its_arguments(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    target = Target.objects.create(
        session=session_of_alice, role="guest", agent="ssh", host="a", user="ops", created_by=alice
    )
    probes = queue_probes(session_of_alice, target, alice, ["guest.driver_version"])
    given = {"ARGV": "--sizes=1024", "INTERPRETER": "/opt/python", "AB": "1"}
    loading = queue_benchmark(session_of_alice, target, alice, "bench.copy", given)
    ask, at = program(alice), f"/sessions/{session_of_alice.pk}/runs"
    assert ask("POST", f"{at}/{probes.pk}/again", {}).status_code == 409
    session_of_alice.runs.update(state=RunState.FAILED)
    made = ask("POST", f"{at}/{probes.pk}/again", {}, Idempotency_Key="k")
    assert (made.status_code, made.json()["names"]) == (201, ["guest.driver_version"])
    assert ask("POST", f"{at}/{probes.pk}/again", {}, Idempotency_Key="k").json() == made.json()
    refused = ask("POST", f"{at}/{loading.pk}/again", {})
    assert (refused.status_code, session_of_alice.runs.count()) == (422, 3)
    made = ask("POST", f"{at}/{loading.pk}/again", {"yes": True}).json()
    assert (made["kind"], made["names"], made["target"]) == ("benchmark", ["bench.copy"], target.pk)
    again = session_of_alice.runs.get(pk=made["id"])
    assert again.arguments == {"ARGV": "--sizes=1024", "INTERPRETER": "/opt/python"}


def test_what_the_words_of_a_redacted_output_stand_for(
    alice: User, bob: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    text = b"root@gpuvm17:~# uname -r\n6.8.12-9-pve\n"
    evidence = take_text(session_of_alice, text, user=alice).evidence
    ask, at = program(alice), f"/sessions/{session_of_alice.pk}"
    key = ask("GET", f"{at}/redaction-key").json()
    assert "gpuvm17" in key.values()
    hidden = html_of(ask("GET", f"{at}/evidence/{evidence.name}/raw?redacted=true"))
    assert "gpuvm17" not in hidden
    for word, secret in key.items():
        hidden = hidden.replace(word, secret)
    assert hidden.startswith(text.decode())
    assert program(bob)("GET", f"{at}/redaction-key").status_code == 404
