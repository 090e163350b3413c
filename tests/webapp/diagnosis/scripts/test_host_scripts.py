"""Apply, verify, roll back and apply again on a stand-in host, for every phase that the host has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.standin.pve_host import ADDRESSES, KPRO6, PveHost
from tests.webapp.diagnosis.scripts.machines import NODES, known_of, scripts_of
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import Do, ScriptError, phase_script

pytestmark = pytest.mark.service

CPU_HOST = KPRO6.replace("cores: 64\n", "cores: 64\ncpu: host\n")
# Raw addresses, one without its function, with options that must stay; args of the admin's own.
RAW = re.sub(
    r"hostpci(\d): mapping=pro6000", lambda m: f"hostpci{m[1]}: {ADDRESSES[int(m[1])]},rombar=0", KPRO6
).replace(f"{ADDRESSES[3]},rombar=0", f"{ADDRESSES[3][:-2]},rombar=0,x-vga=1") + (
    "args: -device 'virtio-rng-pci,max-bytes=1024' -smbios \"type=11,value=it's mine\"\n"
    "cpu: x86-64-v2-AES,flags=+aes,hidden=1\n"
)
HALF = KPRO6.replace("name: llm-one", "hugepages: 2\nnuma: 1\nname: llm-one")


def a_host(folder: Path, config: str = KPRO6) -> PveHost:
    host = PveHost(folder, config)
    host.start()
    return host


Case = tuple[str, str, Callable[[PveHost], Facts]]
CASES: dict[str, Case] = {
    "P0": ("P0", KPRO6, known_of),
    "P2, mapping": ("P2", KPRO6, known_of),
    "P2, raw addresses": ("P2", RAW, known_of),
    "P3, mapping": ("P3", CPU_HOST, known_of),
    "P3, raw addresses, pinned": (
        "P3",
        RAW.replace("cpu: x86-64-v2-AES", "machine: pc-i440fx-9.2+pve1\ncpu: host"),
        known_of,
    ),
    "P4, nodes": ("P4", HALF, lambda host: known_of(host, NODES)),
}


QUICK = {"P0", "P2, raw addresses", "P3, mapping"}


@pytest.mark.parametrize(
    ("case", "shell"),
    [
        *((case, "dash") for case in CASES if case in QUICK),
        *(pytest.param(case, "dash", marks=pytest.mark.thorough) for case in CASES if case not in QUICK),
        pytest.param("P3, mapping", "busybox sh", marks=pytest.mark.thorough),
        pytest.param("P2, raw addresses", "bash", marks=pytest.mark.thorough),
    ],
)
def test_apply_verify_roll_back_and_apply_again(case: str, shell: str, tmp_path: Path) -> None:
    phase, config, facts = CASES[case]
    host = a_host(tmp_path / "host", config)
    scripts = scripts_of(facts(host), phase)
    before = host.values

    dry = host.run(scripts[Do.APPLY], shell=shell)
    assert dry.code == 0, dry.said
    assert "dry run" in dry.said
    assert host.values == before
    assert not (host.root / "root").exists()

    done = host.run(scripts[Do.APPLY], "--yes", shell=shell)
    assert done.code == 0, done.said
    after = host.values
    assert (after == before) is (phase == "P0")
    verified = host.run(scripts[Do.VERIFY], shell=shell)
    assert verified.code == 0, verified.said
    again = host.run(scripts[Do.APPLY], "--yes", shell=shell)
    assert phase == "P0" or "Nothing to do" in again.said

    assert host.run(scripts[Do.ROLLBACK], shell=shell).code == 0
    assert host.values == after
    undone = host.run(scripts[Do.ROLLBACK], "--yes", shell=shell)
    assert undone.code == 0, undone.said
    assert host.values == before
    assert phase == "P0" or host.run(scripts[Do.VERIFY], shell=shell).code == 1
    assert host.run(scripts[Do.ROLLBACK], "--yes", shell=shell).code == 0
    assert host.values == before

    assert host.run(scripts[Do.APPLY], "--yes", shell=shell).code == 0
    assert host.values == after
    assert host.status == "running"


@pytest.mark.thorough
def test_every_phase_in_order_and_back_in_reverse(tmp_path: Path) -> None:
    """As it is meant: the session gets the host's answers again after each phase."""
    host = a_host(tmp_path / "host", HALF)
    before, undo = host.values, []
    for phase in ("P0", "P2", "P3", "P4"):
        scripts = scripts_of(known_of(host, NODES), phase)
        done = host.run(scripts[Do.APPLY], "--yes")
        assert done.code == 0, done.said
        undo.append(scripts[Do.ROLLBACK])
    assert len({*host.values.items()} - {*before.items()}) == 15
    for text in reversed(undo[1:]):
        done = host.run(text, "--yes")
        assert done.code == 0, done.said
    assert host.values == before
    assert "Nothing to do" in host.run(undo[0], "--yes").said


def test_what_p2_sets_and_what_it_keeps(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host", RAW)
    old = host.values
    assert host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes").code == 0
    new = host.values
    cliques = " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=0" for i in range(8))
    assert new["args"] == f"{old['args']} {cliques}"
    assert new["cpu"] == "host,flags=+aes"
    assert new["hostpci3"] == f"{ADDRESSES[3]},rombar=0"
    assert {k for k in new if new[k] != old.get(k)} == {"args", "cpu", "hostpci3"}
    assert "kvm=off" not in host.read("proc/4711/cmdline")


def test_what_p3_sets_and_what_it_keeps(tmp_path: Path) -> None:
    config = CASES["P3, raw addresses, pinned"][1]
    host = a_host(tmp_path / "host", config)
    old = host.values
    ran = host.run(scripts_of(known_of(host), "P3")[Do.APPLY], "--yes")
    assert ran.code == 0, ran.said
    assert "MACAddress=bc:24:11:00:01:28" in ran.said
    new = host.values
    assert new["machine"] == "pc-q35-9.2+pve1"
    assert all(new[f"hostpci{i}"] == f"{old[f'hostpci{i}']},pcie=1" for i in range(8))
    assert {k for k in new if new[k] != old.get(k)} == {"machine", *(f"hostpci{i}" for i in range(8))}


def test_pcie_without_q35_is_never_written(tmp_path: Path) -> None:
    """Also where somebody set pcie=1 before: then the VM is left as it runs."""
    host = a_host(tmp_path / "host")
    script = scripts_of(known_of(host), "P2")[Do.APPLY]
    host.config = host.config.replace("hostpci1: mapping=pro6000", "hostpci1: mapping=pro6000,pcie=1")
    ran = host.run(script, "--yes")
    assert ran.code == 3
    assert "hostpci1 has pcie=1 and the machine is not q35" in ran.said
    assert host.status == "running"


REFUSED: dict[str, tuple[Callable[[PveHost], None], str]] = {
    "not root": (lambda h: h.write("state/uid", "1000\n"), "run it as root"),
    "another name": (lambda h: _edit(h, "name: llm-one", "name: web"), "is named 'web' here"),
    "another VM": (lambda h: _edit(h, "5ac0ffee-0128", "deadbeef-0128"), "it is another VM"),
    "no such VM": (lambda h: (h.root / "etc/pve/qemu-server/128.conf").unlink(), "is not on this host"),
    "args set meanwhile": (
        lambda h: _edit(h, "balloon: 0", "args: -snapshot\nballoon: 0"),
        "args is '-snapshot' here and was ''",
    ),
    "a backup runs": (lambda h: _edit(h, "memory:", "lock: backup\nmemory:"), "is locked (backup)"),
    "a template": (lambda h: _edit(h, "memory:", "template: 1\nmemory:"), "is a template"),
    "pending": (lambda h: _append(h, "[PENDING]\nmemory: 8192\n"), "changes are pending"),
    "snapshots": (lambda h: _append(h, "[pre-q35]\nmemory: 442368\n"), "--with-snapshots"),
    "HA": (lambda h: h.write("etc/pve/ha/resources.cfg", "vm: 128\n"), "high availability manages VM 128"),
    "paused": (lambda h: h.write("state/128.status", "paused\n"), "neither running nor stopped: paused"),
    "another card": (
        lambda h: h.device(ADDRESSES[5], "0x8086", "0x020000"),
        "is not an NVIDIA GPU on this host: 0x8086",
    ),
    "whole devices in the mapping": (
        lambda h: h.write("etc/pve/mapping/pci.cfg", h.read("etc/pve/mapping/pci.cfg").replace(":00.0", ":00")),
        "passes more than one function",
    ),
}


def _edit(host: PveHost, old: str, new: str) -> None:
    assert old in host.config
    host.config = host.config.replace(old, new)


def _append(host: PveHost, text: str) -> None:
    host.config += "\n" + text


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses_what_is_not_as_the_session_believes(name: str, tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    script = scripts_of(known_of(host), "P2")[Do.APPLY]
    change, said = REFUSED[name]
    change(host)
    config = (host.root / "etc/pve/qemu-server/128.conf").read_text() if "no such" not in name else ""
    ran = host.run(script, "--yes")
    assert ran.code == 3, ran.said
    assert said in ran.said
    assert "Nothing was changed." in ran.said
    assert not config or host.config == config
    journal = host.read("state/journal").splitlines()
    assert not [line for line in journal if re.match(r"\d+ qm (set|shutdown) ", line)]


def test_snapshots_are_passed_over_when_a_person_says_so(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host", KPRO6 + "\n[pre-q35]\nmemory: 1024\nargs: -old\n")
    scripts = scripts_of(known_of(host), "P2")
    before = host.config
    assert host.run(scripts[Do.APPLY], "--yes", "--with-snapshots").code == 0
    assert host.config.endswith("[pre-q35]\nmemory: 1024\nargs: -old\n")
    assert host.run(scripts[Do.ROLLBACK], "--yes", "--with-snapshots").code == 0
    assert sorted(host.config.split()) == sorted(before.split())


def test_a_start_that_fails_brings_the_old_configuration_back(tmp_path: Path) -> None:
    """What only QEMU finds out: here an entry whose id is not hostpciN."""
    host = a_host(tmp_path / "host")
    script = scripts_of(known_of(host), "P2")[Do.APPLY]
    before = host.config
    # The device node vanishes between the checks and the start.
    host.write("state/start_says", "")
    qm = (host.root / "bin/qm").resolve().read_text()
    (host.root / "bin/qm").unlink()
    host.write(
        "bin/qm",
        qm.replace(
            "qemu_refuses() {", "qemu_refuses() {\n  grep -q clique \"$1\" && echo 'no free space for the capability'"
        ),
    )
    (host.root / "bin/qm").chmod(0o755)
    ran = host.run(script, "--yes")
    assert ran.code == 1
    assert "no free space for the capability" in ran.said
    assert "rolled back: VM 128 is as it was" in ran.said
    assert host.config == before
    assert host.status == "running"


def test_unmapped_memory_of_a_gpu_is_said_aloud(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    scripts = scripts_of(known_of(host), "P2")
    said = "kvm: vfio_container_dma_map(0x5581, 0xfd00000000, 0x2000000000, 0x7f) = -22 (Invalid argument)\n"
    host.write("state/start_says", said)
    ran = host.run(scripts[Do.APPLY], "--yes")
    assert ran.code == 4
    assert "A clique must not stay set" in ran.said
    host.write("state/journal_of_the_host", said)
    assert host.run(scripts[Do.VERIFY]).code == 1


def test_a_guest_that_does_not_answer_is_shown_to_a_person(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    before = host.config
    host.write("state/no_agent", "")
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes")
    assert ran.code == 4
    assert "The guest agent does not answer" in ran.said
    host.types(ran.to_type)
    assert host.config == before
    assert host.status == "running"


def test_without_an_agent_a_person_is_asked(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host", KPRO6.replace("agent: 1\n", ""))
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes")
    assert ran.code == 4
    assert "look at its console" in ran.said
    assert "agent" not in [line.split()[2] for line in host.read("state/journal").splitlines()]


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 4)])
def test_a_person_at_a_terminal_is_asked(answer: str, code: int, tmp_path: Path) -> None:
    host = a_host(tmp_path / "host", KPRO6.replace("agent: 1\n", ""))
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes", typed=f"{answer}\n")
    assert ran.code == code, ran.said
    assert "Is it up? [yes/no]" in ran.said


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    script = scripts_of(known_of(host), "P2")[Do.APPLY]
    (host.root / "root/peerpath/128/log").mkdir(parents=True)
    assert host.run(script, "--yes").code == 0
    _edit(host, "name: llm-one", "name: web")
    assert host.run(script, "--yes").code == 3


def test_a_vm_that_does_not_shut_down_is_left_alone(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    before = host.config
    host.write("state/hangs", "")
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes")
    assert ran.code == 1
    assert "did not shut down" in ran.said
    assert host.config == before
    assert host.status == "running"


def test_a_stopped_vm_stays_stopped(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host")
    host.write("state/128.status", "stopped\n")
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes")
    assert ran.code == 0, ran.said
    assert host.status == "stopped"
    assert "Start it with: qm start 128" in ran.said


def test_lines_changed_by_hand_since_are_not_rolled_back(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    scripts = scripts_of(known_of(host), "P2")
    assert host.run(scripts[Do.APPLY], "--yes").code == 0
    _edit(host, "cpu: host", "cpu: EPYC-Genoa")
    _edit(host, "memory: 442368", "memory: 400000")
    ran = host.run(scripts[Do.ROLLBACK], "--yes")
    assert ran.code == 3
    assert "cpu is 'EPYC-Genoa', which this phase did not set" in ran.said
    _edit(host, "cpu: EPYC-Genoa", "cpu: host")
    assert host.run(scripts[Do.ROLLBACK], "--yes").code == 0
    assert "args" not in host.values
    assert host.values["memory"] == "400000"


def test_every_step_is_logged(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    assert host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes").code == 0
    log = host.read("root/peerpath/128/log")
    for step in ("backup:", "shutting VM 128 down", "qm set", "qm showcmd", "starting VM 128", "agent"):
        assert re.search(rf"(?m)^\d{{4}}-\d\d-\d\dT[\d:]+Z .*{step}", log), step
    assert (host.root / "root/peerpath").stat().st_mode & 0o77 == 0


def test_the_rehearsal_prefix_needs_its_folder_to_agree(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    (host.root / "peerpath-rehearsal").unlink()
    ran = host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes")
    assert ran.code == 3
    assert "peerpath-rehearsal is not there" in ran.said


def test_p3_waits_for_the_cpu_type(tmp_path: Path) -> None:
    host = PveHost(tmp_path / "host")
    with pytest.raises(ScriptError, match="40 physical address bits"):
        phase_script(known_of(host), "P3", Do.APPLY)


def test_what_is_done_says_so(tmp_path: Path) -> None:
    host = a_host(tmp_path / "host")
    assert host.run(scripts_of(known_of(host), "P2")[Do.APPLY], "--yes").code == 0
    with pytest.raises(ScriptError, match="P2 is done"):
        phase_script(known_of(host), "P2", Do.APPLY)
    assert host.run(phase_script(known_of(host), "P2", Do.VERIFY).text).code == 0
