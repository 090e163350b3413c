"""Every scenario and every stage of the sample: scripts that shells and shellcheck accept, or a sentence."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.facts import Reading, View
from agents.facts.host import BOOT_LOADER, BootLoader
from agents.facts.vm import VMS, Vm
from agents.parsing import qm_config
from tests.standin.pve_host import KPRO6
from tests.webapp.diagnosis.building import sourced
from tests.webapp.diagnosis.sample_facts import diagnosed
from tests.webapp.diagnosis.scenarios import SCENARIOS, Scenario
from tests.webapp.diagnosis.scripts.machines import NODES
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.option import PHASES
from webapp.diagnosis.scripts import ROLES, Do, PhaseScript, ScriptError, phase_script

pytestmark = pytest.mark.thorough

FOUNDING = qm_config.parse(f"### /etc/pve/qemu-server/128.conf\n{KPRO6}cpu: host\n")[0]
STAGES = ("first", "guest", "host", "after")
# What options call useless or harmful, as it would stand in a script that did it.
NEVER = re.compile(
    r"amd_iommu=on|iommu=pt|pcie_acs_override|allow_unsafe_interrupts|nvidia-peermem|nv_peer_mem|"
    r"NCCL_SHM_DISABLE|SKIP_P2P_CHECK|x-vga=1|hidden=1|NCCL_IGNORE_DISABLED_P2P"
)


def results() -> Iterator[tuple[str, Diagnosis]]:
    yield from ((stage, diagnosed(stage)) for stage in STAGES)
    yield from ((scenario.name, diagnose(scenario.facts)) for scenario in SCENARIOS)
    yield from ((f"{s.name}, host read", diagnose(with_host(s), vmid=128)) for s in SCENARIOS)


def with_host(scenario: Scenario) -> Facts:
    """The same machine once the host's collector has answered: the whole VM, loader and nodes."""
    known = [vm for item in scenario.items for vm in _vms(item)]
    vms = [_whole(vm) for vm in known] or [FOUNDING]
    others = [item for item in scenario.items if not _vms(item)]
    host: list[Reading[Any]] = [VMS.known(tuple(vms), lines=(1,)), NODES, BOOT_LOADER.known(BootLoader.GRUB_UEFI)]
    return Facts.of([*others, *sourced(*host, epoch=1)])


def _vms(item: Sourced) -> tuple[Vm, ...]:
    return (item.reading.value or ()) if item.reading.fact_id == VMS.id else ()


def _whole(vm: Vm) -> Vm:
    """The scenario's VM with the lines that its devices would stand on."""
    slots = {f"hostpci{d.slot}": "mapping=gpus" + (",x-vga=1" if d.x_vga else "") for d in vm.hostpci}
    given = {"args": vm.args, "cpu": vm.cpu, "machine": vm.machine}
    more = {key: value for key, value in given.items() if value}
    return replace(vm, config={**vm.config, "memory": "442368", **slots, **more})


def made(result: Diagnosis) -> Iterator[PhaseScript | ScriptError]:
    for role in (View.HOST, View.GUEST):
        for phase in PHASES:
            for do in Do:
                try:
                    yield phase_script(result, phase, do, role=role)
                except ScriptError as error:
                    yield error


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, Diagnosis, list[PhaseScript | ScriptError]]]:
    return [(name, result, list(made(result))) for name, result in results()]


def scripts(found: list[PhaseScript | ScriptError]) -> list[PhaseScript]:
    return [one for one in found if isinstance(one, PhaseScript)]


Everything = list[tuple[str, Diagnosis, list[PhaseScript | ScriptError]]]


def test_a_refusal_is_a_sentence(everything: Everything) -> None:
    refusals = [one for _, _, found in everything for one in found if isinstance(one, ScriptError)]
    assert refusals
    for error in refusals:
        assert re.fullmatch(r"[A-Z][^\n]{20,}[.`]", str(error)), str(error)


def test_each_is_clean_for_shellcheck_dash_and_busybox(everything: Everything, tmp_path: Path) -> None:
    texts = {s.text for _, _, found in everything for s in scripts(found)}
    assert len(texts) > 40
    files = []
    for number, text in enumerate(sorted(texts)):
        file = tmp_path / f"{number}.sh"
        file.write_text(text)
        files.append(str(file))
        for shell in (["dash", "-n"], ["busybox", "sh", "-n"]):
            subprocess.run([*shell, file], check=True)
    # One process a core, in the background of each other.
    commands = [["shellcheck", "-s", "sh", *files[start::2]] for start in (0, 1)]
    running = [subprocess.Popen(one, stdout=subprocess.PIPE, text=True) for one in commands]
    for process in running:
        said, _ = process.communicate()
        assert process.returncode == 0, said[:4000]


def test_what_is_useless_or_harmful_is_never_written(everything: Everything) -> None:
    for name, _, found in everything:
        for script in scripts(found):
            for line in script.text.splitlines():
                assert not (re.match(r"(new|value)_\d+=", line) and NEVER.search(line)), (name, line)


def test_a_clique_is_written_only_where_it_is_advised(everything: Everything) -> None:
    for name, result, found in everything:
        status = result.advice["gpudirect_clique"].status
        for script in scripts(found):
            added = [c for c in script.changes if "clique" in c.partition(" → ")[2]]
            if script.do is Do.APPLY and added:
                assert status is OptionStatus.RECOMMENDED, name


def test_what_a_person_reads_is_there(everything: Everything) -> None:
    for _, _, found in everything:
        for script in scripts(found):
            assert script.risk
            assert script.reads
            assert script.refusals
            assert script.what_to_type
            assert (script.changes == ()) is (script.do is Do.VERIFY)
            assert len(script.sha256) == 64
            assert script.file_name.endswith(".sh")


def test_the_founding_case_gets_its_clique_and_its_rollback() -> None:
    script = phase_script(diagnosed("host"), "P2", Do.APPLY)
    assert script.changes[0] == "cpu: (not set) → host"
    assert script.changes[1].count("x-nv-gpudirect-clique=0") == 8
    assert script.predicted_effect == diagnosed("host").advice["gpudirect_clique"].predicted_effect
    assert script.what_to_type == (
        "sha256sum peerpath-host-P2-apply-vm128.sh",
        "sh peerpath-host-P2-apply-vm128.sh",
        "sh peerpath-host-P2-apply-vm128.sh --yes",
    )


def test_every_option_has_a_place_in_a_script_or_is_done_by_hand(everything: Everything) -> None:
    """A script of its phase is made on some machine where the option is worth it; no phase without a script
    has an option that says so."""
    worth = {OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE}
    carried_out = set()
    for _, result, found in everything:
        phases = {script.phase for script in scripts(found) if script.do is Do.APPLY}
        carried_out |= {o.id for o in all_options() if o.phase in phases and result.advice[o.id].status in worth}
    assert {option.id for option in all_options() if option.scripted} <= carried_out
    assert all(ROLES[option.phase] for option in all_options() if option.scripted)
