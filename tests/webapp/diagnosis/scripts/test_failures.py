"""A failure at every step of every phase, applied and rolled back: the machine is as it was, or the script
says what to type, and typing it helps.

Each call of a tool that acts fails once: it does nothing and says so. Beside that it fails in one of three
other ways, in turn: it does its work and then fails, it does nothing and reports success, or somebody ends
the script at that point. Whatever state a failure leaves, the phase can be applied and rolled back from it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.standin.pve_host import KPRO6, PveHost
from tests.webapp.diagnosis.scripts.machines import NODES, known_of, scripts_of
from tests.webapp.diagnosis.scripts.test_guest_scripts import a_guest, script, where
from tests.webapp.diagnosis.scripts.test_host_scripts import RAW
from webapp.diagnosis.scripts import Do

pytestmark = [pytest.mark.service, pytest.mark.thorough]

CPU_HOST = KPRO6.replace("cores: 64\n", "cores: 64\ncpu: host\n")
OTHER_WAYS = ("after", "lie", "kill")
GUEST_WAYS = ("after", "kill")  # whether the engine took its settings over, verify asks the engine
WAITS = 4  # the exit code of a script that wants a person to look at the guest
# What a machine is: its configuration, whether it runs and with what, and how it boots.
PLACES = ("etc", "srv", "opt", "home", "state", "proc/815", "proc/4711")
PASSING = ("state/calls", "state/journal", "state/words", "state/shown")
State = dict[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One half of a phase on one machine, ready to run. back: the other half, "" where that does not lead
    to where this one began. words: of both.

    undoes: it is the rollback, which may as well be finished by hand. ways: beside "before".
    """

    machine: PveHost
    text: str
    back: str
    words: tuple[str, ...] = ()
    undoes: bool = False
    ways: tuple[str, ...] = OTHER_WAYS


def state_of(machine: PveHost) -> State:
    found = (f for place in PLACES for f in (machine.root / place).rglob("*") if f.is_file())
    texts = {str(f.relative_to(machine.root)): f.read_text() for f in found}
    # Proxmox sorts a configuration when it writes it.
    return {
        name: "\n".join(sorted(text.splitlines())) if name.endswith(f"{machine.vmid}.conf") else text
        for name, text in texts.items()
        if name not in PASSING
    }


def notes_of(machine: PveHost) -> str:
    """What the scripts keep for themselves, without the times."""
    kept = sorted(f for f in (machine.root / "root").rglob("*") if f.is_file() and f.name != "log")
    text = "".join(f"{f}\n{f.read_text()}" for f in kept).replace(str(machine.root), "")
    return re.sub(r"\d{4}-\d\d-\d\dT\d+", "", text)


def _copy(machine: PveHost, name: str) -> PveHost:
    folder = machine.root.with_name(name)
    shutil.copytree(machine.root, folder, symlinks=True)
    copy = object.__new__(PveHost)
    copy.root, copy.vmid = folder, machine.vmid
    return copy


class Trials:
    """Runs one half of a phase with each failure, on a copy of its machine at the same path."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.kept = _copy(part.machine, "kept")
        self.before = state_of(part.machine)
        self.gone_on: set[str] = set()

    def again(self) -> PveHost:
        """The machine as it was. At the same path, as its own files name it."""
        shutil.rmtree(self.part.machine.root)
        shutil.copytree(self.kept.root, self.part.machine.root, symlinks=True)
        return self.part.machine

    def run(self, fail: str = "", *, back: bool = False) -> tuple[int, str, list[str]]:
        text = self.part.back if back else self.part.text
        ran = self.part.machine.run(text, *self.part.words, "--yes", fail=fail)
        return ran.code, ran.said, ran.to_type

    def all(self) -> int:
        """How many failures were tried."""
        machine = self.again()
        code, said, _ = self.run()
        assert code in {0, WAITS}, said
        wanted, calls = state_of(machine), machine.calls
        fails = [
            f"{call}:{way}"
            for call in range(1, calls + 1)
            for way in ("before", self.part.ways[call % len(self.part.ways)])
        ]
        for fail in fails:
            self.again()
            self.one(fail, wanted)
        return calls

    def one(self, fail: str, wanted: State) -> None:
        before, machine = self.before, self.part.machine
        code, said, to_type = self.run(fail)
        now = state_of(machine)
        if code == 0:
            assert now in (before, wanted), (fail, said)
        elif now != before:
            ends = (before, wanted) if self.part.undoes else (before,)
            assert to_type or now in ends, (fail, said)
            machine.types(to_type)
            assert state_of(machine) in ends, (fail, said)
        self.go_on(fail, said, wanted)

    def go_on(self, fail: str, said: str, wanted: State) -> None:
        """From where the failure led: on to the end, and from there back; once for each such place."""
        place = f"{state_of(self.part.machine)}{notes_of(self.part.machine)}"
        if place in self.gone_on:
            return
        self.gone_on.add(place)
        code, more, _ = self.run()
        assert code in {0, WAITS}, (fail, said, more)
        assert state_of(self.part.machine) == wanted, (fail, said, more)
        if not self.part.back:
            return
        code, more, _ = self.run(back=True)
        assert code in {0, WAITS}, (fail, said, more)
        assert state_of(self.part.machine) == self.before, (fail, said, more)


def halves(
    machine: PveHost, scripts: dict[Do, str], words: Sequence[str] = (), ways: tuple[str, ...] = OTHER_WAYS
) -> Iterator[tuple[str, Part]]:
    """Both ways; the second once the phase is applied."""
    apply, rollback = scripts[Do.APPLY], scripts[Do.ROLLBACK]
    yield "apply", Part(machine, apply, rollback, tuple(words), ways=ways)
    assert machine.run(apply, *words, "--yes").code in {0, WAITS}
    yield "rollback", Part(machine, rollback, apply, tuple(words), undoes=True, ways=ways)


def a_host(folder: Path, config: str) -> PveHost:
    host = PveHost(folder, config)
    host.start()
    return host


def on_host(phase: str, config: str = KPRO6) -> Callable[[Path], Iterator[tuple[str, Part]]]:
    def parts(folder: Path) -> Iterator[tuple[str, Part]]:
        host = a_host(folder, config)
        return halves(host, scripts_of(known_of(host, NODES), phase))

    return parts


def kept_by_p0(folder: Path) -> Iterator[tuple[str, Part]]:
    """P0 applied changes nothing; rolled back it undoes whatever came after it."""
    host = a_host(folder, KPRO6)
    p0, p2 = (scripts_of(known_of(host), phase) for phase in ("P0", "P2"))
    yield "apply", Part(host, p0[Do.APPLY], "")
    for scripts in (p0, p2):
        assert host.run(scripts[Do.APPLY], "--yes").code == 0
    yield "rollback", Part(host, p0[Do.ROLLBACK], p2[Do.APPLY], undoes=True)


def engine_in(kind: str) -> Callable[[Path], Iterator[tuple[str, Part]]]:
    def parts(folder: Path) -> Iterator[tuple[str, Part]]:
        guest = a_guest(folder)
        guest.types(["systemctl restart vllm.service", "docker compose up -d engine"])
        return halves(guest, {do: script(do) for do in Do}, where(guest, kind), GUEST_WAYS)

    return parts


PHASES = {
    "P0": kept_by_p0,
    "P2, mapping": on_host("P2"),
    "P2, raw addresses": on_host("P2", RAW),
    "P3": on_host("P3", CPU_HOST),
    "P4": on_host("P4"),
    **{f"P1 in the guest, {kind}": engine_in(kind) for kind in ("unit", "compose", "file")},
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_failure_at_every_step(phase: str, tmp_path: Path) -> None:
    tried = {}
    for half, part in PHASES[phase](tmp_path / "machine"):
        trials = Trials(part)
        tried[half] = trials.all()
        trials.again()
        shutil.rmtree(trials.kept.root)
    assert set(tried) == {"apply", "rollback"}
    assert min(tried.values()) >= 1, tried


@pytest.mark.parametrize("kind", ["unit", "compose"])
def test_an_engine_that_did_not_take_its_settings_over_is_found_by_verify(kind: str, tmp_path: Path) -> None:
    guest = a_guest(tmp_path / "guest")
    words = where(guest, kind)
    assert guest.run(script(Do.APPLY), *words, "--yes").code == 0
    calls, found = guest.calls, 0
    assert guest.run(script(Do.VERIFY), *words).code == 0
    for call in range(1, calls + 1):
        lied = a_guest(tmp_path / f"{call}")
        ran = lied.run(script(Do.APPLY), *where(lied, kind), "--yes", fail=f"{call}:lie")
        engine = lied.root / "proc/815/environ", lied.root / "state/container_env"
        if ran.code == 0 and not any(file.exists() for file in engine):
            found += lied.run(script(Do.VERIFY), *where(lied, kind)).code == 1
    assert found >= 1
