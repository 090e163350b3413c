"""`pcie=1` on a machine that is not q35: this VM does not start.

`qm set` accepts it; the start ends with `q35 machine model is not enabled`. Pending values count: they are
what the next start uses.

Source: Proxmox qemu-server 9.2.6, PCI.pm.
"""

import re
from collections.abc import Iterator

from agents.facts import ReadingKind
from agents.facts.platform import MachineType
from agents.facts.vm import VMS, Vm
from webapp.diagnosis.case import Case
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Sourced
from webapp.diagnosis.rule import Clash, Rule
from webapp.diagnosis.situation import vm_readings

_PCIE = re.compile(r"(?:^|,)\s*pcie=1\b")


def check(case: Case) -> Iterator[Clash]:
    items = [s for s in case.facts.all(VMS) if s.reading.kind is ReadingKind.KNOWN]
    newest = max((s.epoch for s in items), default=0)
    seen: set[int | None] = set()
    for item in (s for s in items if s.epoch == newest):
        for vm in item.reading.value or ():
            keys = _with_pcie(vm)
            if keys and _is_not_q35(vm) and vm.id not in seen:
                seen.add(vm.id)
                yield _text(vm, keys), _refs(item, vm, keys)


def _with_pcie(vm: Vm) -> tuple[str, ...]:
    now = {f"hostpci{d.slot}" for d in vm.hostpci if d.pcie}
    later = {key for key, value in vm.pending.items() if key.startswith("hostpci")}
    on = {key for key in later if _PCIE.search(vm.pending[key])}
    return tuple(sorted((now - later) | on))


def _is_not_q35(vm: Vm) -> bool:
    raw = vm.pending.get("machine", vm.machine)
    if raw is None:
        return vm_readings.whole(vm)
    return vm_readings.machine_type(raw) is MachineType.I440FX


def _text(vm: Vm, keys: tuple[str, ...]) -> str:
    name = f"VM {vm.id}" if vm.id is not None else "the VM"
    return (
        f"{name} has pcie=1 on {', '.join(keys)} and is not a q35 machine: its next start ends with "
        "“q35 machine model is not enabled”"
    )


def _refs(item: Sourced, vm: Vm, keys: tuple[str, ...]) -> tuple[EvidenceRef, ...]:
    lines = [vm.key_lines[key] for key in (*keys, "machine") if key in vm.key_lines]
    return tuple(EvidenceRef(item.source, line) for line in lines[:4]) or item.refs[:2]


rule = Rule(__name__, "pcie=1 without q35", check)
