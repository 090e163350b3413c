"""The emulated board of the VM: as its configuration says, else as the guest sees it."""

from __future__ import annotations

from agents.facts.platform import MACHINE_TYPE, MachineType
from agents.facts.vm import VM_MACHINE
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts


def vm_board(facts: Facts) -> MachineType | None:
    """Of two readings the one of the newer epoch; within one epoch the host's."""
    if facts.peek(VM_MACHINE) is None or facts.newer(MACHINE_TYPE, VM_MACHINE):
        return facts.value(MACHINE_TYPE) or facts.value(VM_MACHINE)
    return facts.value(VM_MACHINE)


def vm_board_refs(facts: Facts) -> tuple[EvidenceRef, ...]:
    """Of the readings that say so: one that says another board is no evidence for this one."""
    board = vm_board(facts)
    return facts.refs(*(f for f in (VM_MACHINE, MACHINE_TYPE) if facts.peek(f) in {board, None}))
