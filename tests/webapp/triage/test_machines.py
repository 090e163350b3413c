"""A group of machines: added at once, their keys vouched for, kept apart from the session's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from agents.facts import View
from agents.facts.platform import DRIVER_VERSION
from agents.framing import Frame
from agents.probe import Output
from tests.agents.conftest import make_key
from webapp.accounts.models import User
from webapp.triage import intake, machines, runs
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession, Run, Target
from webapp.triage.progress import progress_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def known_hosts(tmp_path: Path) -> str:
    make_key(tmp_path / "host")
    key = " ".join((tmp_path / "host.pub").read_text().split()[:2])
    return f"gpu-1 {key}\n[gpu-2]:2222 {key}\n"


def add(client: Client, session: DiagnosisSession, lines: str, **more: str) -> object:
    typed = {"machines": lines, "user": "ops", "port": "22", "jump": "", **more}
    return client.post(f"/sessions/{session.pk}/machines", typed, follow=True)


def test_a_group_is_added_once_with_the_keys_that_were_vouched_for(
    client: Client, alice: User, session_of_alice: DiagnosisSession, known_hosts: str
) -> None:
    client.force_login(alice)
    for _ in range(2):
        add(client, session_of_alice, "gpu-1\nroot@gpu-2:2222\n# spare\ngpu-3\n", known_hosts=known_hosts)
    found = [(t.user, t.host, t.port, t.beside) for t in machines.guests(session_of_alice)]
    assert found == [("ops", "gpu-1", 22, True), ("root", "gpu-2", 2222, True), ("ops", "gpu-3", 22, True)]
    assert set(session_of_alice.host_keys.values_list("host", "port")) == {("gpu-1", 22), ("gpu-2", 2222)}
    page = client.post(f"/sessions/{session_of_alice.pk}/machines/run", follow=True)
    said = "The probes are queued on 2 machines; left out, without an accepted host key: 1."
    assert said in page.content.decode()
    started = session_of_alice.runs.all()
    assert sorted(run.target.host for run in started) == ["gpu-1", "gpu-2"], "gpu-3 has no key yet"
    assert machines.run_on_all(session_of_alice, alice) == [], "they are at work"
    assert {run.kind for run in started} == {runs.PROBES}


@pytest.mark.parametrize("line", ["gpu;rm", "a@b@c:x", "gpu:0", "gpu:99999", "-oProxyCommand=x", "$(id)"])
def test_lines_that_are_no_machine_are_refused(
    client: Client, alice: User, session_of_alice: DiagnosisSession, line: str
) -> None:
    client.force_login(alice)
    assert add(client, session_of_alice, line).status_code == 422  # type: ignore[attr-defined]
    assert not session_of_alice.targets.exists()


def told(session: DiagnosisSession, target: Target, user: User, driver: str) -> None:
    """The machine's own run said which driver it has."""
    run = Run.objects.create(
        session=session,
        target=target,
        number=1 + session.runs.count(),
        kind="probes",
        names=["guest.driver_version"],
        state="succeeded",
        created_by=user,
    )
    raw = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Jan  7 00:00:00 UTC 2026\n"
    output = Output(raw, "", 0)
    intake.take_frames(run, [Frame("guest.driver_version", output, raw.encode(), b"", 5, 1, 1)])


def test_the_odd_one_is_named_and_the_sessions_diagnosis_is_not_mixed_up(
    client: Client, alice: User, session_of_alice: DiagnosisSession, known_hosts: str
) -> None:
    client.force_login(alice)
    add(client, session_of_alice, "gpu-1\ngpu-2\ngpu-3\ngpu-4")
    own = Target.objects.create(session=session_of_alice, role="guest", agent="ssh", host="own", created_by=alice)
    told(session_of_alice, own, alice, "580.95.05")
    for target, driver in zip(machines.guests(session_of_alice), ("580.95.05", "575.57.08"), strict=False):
        told(session_of_alice, target, alice, driver)
    told(session_of_alice, session_of_alice.targets.get(host="gpu-3"), alice, "580.95.05")
    said = client.get(f"/sessions/{session_of_alice.pk}/machines").content.decode()
    assert "ops@gpu-2:22 is the odd one out." in said
    assert "575.57.08" in said
    assert said.count("not known") >= 1, "gpu-4 has said nothing"
    assert facts_of(session_of_alice).value(DRIVER_VERSION) == "580.95.05"
    assert len(facts_of(session_of_alice).all(DRIVER_VERSION)) == 1


def test_what_others_answer_ticks_no_step_and_leaves_the_questions_open(
    client: Client, alice: User, session_of_alice: DiagnosisSession, known_hosts: str
) -> None:
    client.force_login(alice)
    add(client, session_of_alice, "gpu-1")
    open_before = intake.missing_probes(session_of_alice, View.GUEST)
    told(session_of_alice, session_of_alice.targets.get(host="gpu-1"), alice, "580.95.05")
    assert intake.missing_probes(session_of_alice, View.GUEST) == open_before
    assert "guest" not in progress_of([session_of_alice])[session_of_alice.pk].done


def test_a_machine_that_was_added_twice_is_one_column_and_one_vote(
    client: Client, alice: User, session_of_alice: DiagnosisSession, known_hosts: str
) -> None:
    """Added again, as somebody else or on another page, such as with the right key."""
    client.force_login(alice)
    add(client, session_of_alice, "gpu-1\ngpu-2\ngpu-3", known_hosts=known_hosts)
    for target, driver in zip(machines.guests(session_of_alice), ("575.57.08", "580.95.05", "580.95.05"), strict=True):
        told(session_of_alice, target, alice, driver)
    for _ in range(2):
        again = Target.objects.create(
            session=session_of_alice, role="guest", agent="ssh", host="gpu-1", port=22, user="root", created_by=alice
        )
        told(session_of_alice, again, alice, "575.57.08")
    page = client.get(f"/sessions/{session_of_alice.pk}/machines")
    assert page.status_code == 200
    said = page.content.decode()
    assert "root@gpu-1:22 is the odd one out." in said
    assert "ops@gpu-1" not in said[said.index("<table") : said.index("</table>")]
    found = machines.side_by_side(session_of_alice, machines.guests(session_of_alice))
    assert found.machines == ("root@gpu-1:22", "ops@gpu-2:22", "ops@gpu-3:22")
    session_of_alice.runs.update(ended_at=timezone.now())
    started = machines.run_on_all(session_of_alice, alice)
    assert [run.target for run in started] == [again], "the others have no key yet"
    assert machines.run_on_all(session_of_alice, alice) == [], "they are at work"
