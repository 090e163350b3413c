"""A failure at every step: the VM is as it was, or the script says what to type, and typing it helps.

Each call of a tool fails once in each of three ways: it does nothing and says so, it does its work and
then fails, or it does nothing and reports success. A script that is ended by a signal counts, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.standin.pve_host import KPRO6, PveHost
from tests.webapp.diagnosis.scripts.machines import NODES, known_of, scripts_of
from webapp.diagnosis.scripts import Do

pytestmark = [pytest.mark.service, pytest.mark.thorough]

CPU_HOST = KPRO6.replace("cores: 64\n", "cores: 64\ncpu: host\n")
BOOT_FILES = ("etc/kernel/cmdline", "etc/default/grub")
WAYS = ("before", "after", "lie", "kill")


def state_of(host: PveHost) -> tuple[object, ...]:
    """What must be as it was: configuration, whether it runs, and how the host boots."""
    return (host.values, host.status, *(host.read(name) for name in BOOT_FILES))


def trials(host: PveHost, text: str, ways: Sequence[str]) -> Iterator[tuple[str, PveHost]]:
    """A copy of the host for every call of the script and every way it is to fail."""
    rehearsal = _copy(host, "whole")
    assert rehearsal.run(text, "--yes").code in {0, 4}
    for call in range(1, rehearsal.calls + 1):
        for way in ways:
            yield f"{call}:{way}", _copy(host, f"{call}-{way}")


def _copy(host: PveHost, name: str) -> PveHost:
    folder = host.root.with_name(name)
    shutil.copytree(host.root, folder, symlinks=True)
    copy = object.__new__(PveHost)
    copy.root, copy.vmid = folder, host.vmid
    return copy


def check(host: PveHost, text: str, ways: Sequence[str] = WAYS, undo: str = "") -> None:
    """undo: the rollback script, which must work after every success."""
    before = state_of(host)
    done = _copy(host, "done")
    done.run(text, "--yes")
    wanted = state_of(done)
    count = 0
    for fail, copy in trials(host, text, ways):
        ran = copy.run(text, "--yes", fail=fail)
        count += 1
        now = state_of(copy)
        if ran.code == 0:
            assert now in (before, wanted), (fail, ran.said)
            if undo:
                assert copy.run(undo, "--yes").code == 0
                assert state_of(copy) == before, (fail, ran.said)
        elif now == wanted and "Now reboot the host" in ran.said:
            continue
        elif now != before:
            assert ran.to_type, (fail, ran.said)
            copy.types(ran.to_type)
            assert state_of(copy) == before, (fail, ran.said)
        shutil.rmtree(copy.root)
    assert count >= 10


@pytest.mark.parametrize(
    ("phase", "config", "ways"), [("P2", KPRO6, WAYS), ("P3", CPU_HOST, WAYS[:1])]
)
def test_a_failure_while_applying(
    phase: str, config: str, ways: Sequence[str], tmp_path: Path
) -> None:
    host = PveHost(tmp_path / "host", config)
    host.start()
    scripts = scripts_of(known_of(host), phase)
    check(host, scripts[Do.APPLY], ways, undo=scripts[Do.ROLLBACK])


def test_a_failure_while_rolling_back(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host", KPRO6)
    host.start()
    scripts = scripts_of(known_of(host), "P2")
    assert host.run(scripts[Do.APPLY], "--yes").code == 0
    check(host, scripts[Do.ROLLBACK], WAYS[:2])


def test_a_failure_while_going_back_to_what_was_kept(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host", KPRO6)
    host.start()
    facts = known_of(host)
    assert host.run(scripts_of(facts, "P0")[Do.APPLY], "--yes").code == 0
    assert host.run(scripts_of(facts, "P2")[Do.APPLY], "--yes").code == 0
    check(host, scripts_of(facts, "P0")[Do.ROLLBACK], WAYS[:1])


def test_a_failure_while_pages_are_reserved(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host", KPRO6)
    host.start()
    check(host, scripts_of(known_of(host, NODES), "P4")[Do.APPLY])


def test_a_failure_while_the_vm_gets_its_pages(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host", KPRO6)
    host.start()
    script = scripts_of(known_of(host, NODES), "P4")[Do.APPLY]
    assert host.run(script, "--yes").code == 4
    host.reboots(free_gib=432)
    check(host, script, WAYS[:1])
