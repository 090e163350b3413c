"""Guest scripts on a stand-in guest: a unit, a compose file, a start script; NIC names; vLLM's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.facts.nccl import ENGINE, Engine
from tests.standin.pve_host import PveHost
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import Do, ScriptError, phase_script

pytestmark = pytest.mark.service

EAGER = ENGINE.known(Engine("vllm", flags={"enforce-eager": "true", "port": "8000"}), lines=(1,))
UNIT = """\
[Service]
ExecStart=/opt/vllm/bin/vllm serve /models/glm --enforce-eager --port 8000
Restart=always
"""
START = """\
#!/bin/bash
cd /opt
exec vllm serve /models/glm --port 8000 --enforce-eager
"""
COMPOSE = "services:\n  engine:\n    image: vllm\n"
GRANTED = " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"


def a_guest(folder: Path) -> PveHost:
    guest = PveHost(folder)
    guest.write("etc/systemd/system/vllm.service", UNIT)
    guest.write("opt/start.sh", START)
    guest.write("srv/compose.yaml", COMPOSE)
    guest.write("state/unit", "active\n")
    return guest


def script(do: Do, phase: str = "P1", facts: Facts | None = None) -> str:
    found = facts or facts_of(*kvm_guest(), EAGER)
    return phase_script(found, phase, do, role="guest").text


def where(guest: PveHost, kind: str) -> list[str]:
    return {
        "unit": ["--unit", "vllm.service"],
        "compose": ["--compose", str(guest.root / "srv/compose.yaml"), "--service", "engine"],
        "file": ["--file", str(guest.root / "opt/start.sh")],
    }[kind]


def files_of(guest: PveHost) -> dict[str, str]:
    """Everything that P1 may change, by path."""
    parts = ("etc/systemd", "srv", "opt")
    found = (f for part in parts for f in (guest.root / part).rglob("*") if f.is_file())
    return {str(f.relative_to(guest.root)): f.read_text() for f in found}


@pytest.mark.parametrize("kind", ["unit", "compose", "file"])
def test_apply_verify_roll_back_and_apply_again(kind: str, tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    place, before = where(guest, kind), files_of(guest)
    dry = guest.run(script(Do.APPLY), *place)
    assert dry.code == 0, dry.said
    assert "dry run" in dry.said
    assert "NCCL_P2P_LEVEL" in dry.said
    assert files_of(guest) == before

    done = guest.run(script(Do.APPLY), *place, "--yes")
    assert done.code == 0, done.said
    after = files_of(guest)
    assert after != before
    checked = guest.run(script(Do.VERIFY), *place)
    assert checked.code == 0, checked.said
    assert "Nothing to do" in guest.run(script(Do.APPLY), *place, "--yes").said
    assert files_of(guest) == after

    assert guest.run(script(Do.ROLLBACK), *place).code == 0
    assert files_of(guest) == after
    undone = guest.run(script(Do.ROLLBACK), *place, "--yes")
    assert undone.code == 0, undone.said
    assert files_of(guest) == before
    assert guest.run(script(Do.VERIFY), *place).code == 1
    assert "Nothing to roll back" in guest.run(script(Do.ROLLBACK), *place, "--yes").said

    assert guest.run(script(Do.APPLY), *place, "--yes").code == 0
    assert files_of(guest) == after


def test_what_is_written_where(tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    assert guest.run(script(Do.APPLY), *where(guest, "unit"), "--yes").code == 0
    drop_in = guest.read("etc/systemd/system/vllm.service.d/50-peerpath-P1.conf")
    assert 'Environment="NCCL_P2P_LEVEL=PHB"' in drop_in
    assert 'Environment="NCCL_DEBUG_FILE=/tmp/nccl.%%h.%%p"' in drop_in
    assert "ExecStart=\nExecStart=/opt/vllm/bin/vllm serve /models/glm --port 8000\n" in drop_in

    assert guest.run(script(Do.APPLY), *where(guest, "file"), "--yes").code == 0
    lines = guest.read("opt/start.sh").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert "export NCCL_DEBUG_FILE='/tmp/nccl.%h.%p'" in lines
    assert lines[-1] == "exec vllm serve /models/glm --port 8000"

    ran = guest.run(script(Do.APPLY), *where(guest, "compose"), "--yes")
    assert '      NCCL_P2P_LEVEL: "PHB"' in guest.read("srv/compose.override.yaml")
    assert "Take --enforce-eager out of the engine's command yourself" in ran.said


def test_an_engine_that_does_not_come_up_gets_its_old_settings_back(tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    before = files_of(guest)
    guest.write("state/compose_fails", "")
    ran = guest.run(script(Do.APPLY), *where(guest, "compose"), "--yes")
    assert ran.code == 1
    assert "rolled back" in ran.said
    assert files_of(guest) == before
    guest.write("state/unit_fails", "")
    ran = guest.run(script(Do.APPLY), *where(guest, "unit"), "--yes")
    assert ran.code == 1
    assert "systemctl daemon-reload && systemctl restart vllm.service" in ran.said
    assert files_of(guest) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Say where the engine is started"),
        (["--unit", "a;touch canary.service"], "is not a unit"),
        (["--unit", "absent.service"], "there is no unit absent.service"),
        (["--unit", "box.service"], "starts a container"),
        (["--compose", "/nowhere/compose.yaml", "--service", "x"], "is not there"),
        (["--compose", "/nowhere/$(id)", "--service", "x"], "is not a path"),
        (["--unit"], "'--yes' is not a unit"),
        (["--service", "x", "--unit"], "is not a unit"),
        (["--unit", "a.service", "--file", "b"], "usage:"),
    ],
)
def test_it_refuses_where_it_cannot_write(words: list[str], said: str, tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    guest.write("etc/systemd/system/box.service", "[Service]\nExecStart=/usr/bin/docker run vllm\n")
    before = files_of(guest)
    ran = guest.run(script(Do.APPLY), *words, "--yes")
    assert ran.code in {2, 3}
    assert said in ran.said
    assert files_of(guest) == before


def test_a_start_script_that_was_worked_on_is_not_thrown_away(tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    assert guest.run(script(Do.APPLY), *where(guest, "file"), "--yes").code == 0
    guest.write("opt/start.sh", guest.read("opt/start.sh") + "# mine\n")
    ran = guest.run(script(Do.ROLLBACK), *where(guest, "file"), "--yes")
    assert ran.code == 3
    assert "was worked on since" in ran.said
    assert guest.read("opt/start.sh").endswith("# mine\n")


def test_somebody_elses_override_is_left_alone(tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    guest.write("srv/compose.override.yaml", "services: {}\n")
    ran = guest.run(script(Do.APPLY), *where(guest, "compose"), "--yes")
    assert ran.code == 3
    assert "not from this script" in ran.said


@pytest.mark.parametrize("phase", ["P0", "P2", "P3", "P4", "P5"])
def test_the_other_phases_have_no_script_in_the_guest(phase: str) -> None:
    with pytest.raises(ScriptError, match=phase):
        script(Do.APPLY, phase)
