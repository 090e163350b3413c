"""Did the P2P status change, and was that predicted: the driver's answers before and after a change."""

from dataclasses import dataclass
from typing import Any

from agents.facts import Fact
from agents.facts.host import HOST_CMDLINE
from agents.facts.p2p import P2P_READ, P2pCode, P2pMatrix
from agents.facts.platform import KERNEL_CMDLINE, MachineType
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VM_HOSTPCI, VM_MACHINE
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class StatusChange:
    """changes: what was changed between the epochs. predicted: "unchanged", or "OK" after a clique.

    held None: nothing that was changed has a prediction.
    """

    before: tuple[P2pCode, ...]
    after: tuple[P2pCode, ...]
    changes: tuple[str, ...]
    predicted: str
    held: bool | None
    evidence: tuple[EvidenceRef, ...]

    @property
    def unchanged(self) -> bool:
        return self.before == self.after


def p2p_status(facts: Facts) -> StatusChange | None:
    """None when the matrix was not read both before and after."""
    old, new = facts.before(P2P_READ), facts.best(P2P_READ)
    if old is None or new is None or old.epoch >= new.epoch:
        return None
    changes = _changes(facts)
    before, after = _codes(old.reading.value), _codes(new.reading.value)
    now = facts.value(VM_CLIQUE)
    clique = bool(now) and facts.before(VM_CLIQUE) is None
    predicted = "OK" if clique else "unchanged"
    held = set(after) == {P2pCode.OK} if clique else before == after
    return StatusChange(before, after, changes, predicted, held if changes else None, old.refs[:1] + new.refs[:1])


def _codes(matrix: P2pMatrix | None) -> tuple[P2pCode, ...]:
    return tuple(sorted(set(matrix.pairs().values()))) if matrix else ()


def _changes(facts: Facts) -> tuple[str, ...]:
    """The changes that may have altered the driver's decision, in the order of the plan."""
    changes = []
    if facts.value(VM_MACHINE) is MachineType.Q35 and _earlier_value(facts, VM_MACHINE) is MachineType.I440FX:
        changes.append("q35")
    if _pcie(facts.value(VM_HOSTPCI)) and not _pcie(_earlier_value(facts, VM_HOSTPCI)):
        changes.append("pcie=1")
    changes += _added_parameters(facts, HOST_CMDLINE) + _added_parameters(facts, KERNEL_CMDLINE)
    if facts.value(VM_CLIQUE) and not _earlier_value(facts, VM_CLIQUE):
        changes.append("clique")
    elif facts.value(VM_ARGS) and not _earlier_value(facts, VM_ARGS):
        changes.append("args")
    return tuple(changes)


def _earlier_value(facts: Facts, fact: Fact[Any]) -> Any:
    old = facts.before(fact)
    return old.reading.value if old else None


def _pcie(devices: Any) -> bool:
    return bool(devices) and all(device.pcie for device in devices)


def _added_parameters(facts: Facts, fact: Fact[str]) -> list[str]:
    """Parameters of a kernel command line that are new and about PCI or the IOMMU."""
    old = _earlier_value(facts, fact)
    new = facts.value(fact) or ""
    before = set((old or "").split())
    about = ("iommu", "amd_iommu", "intel_iommu", "pci", "pcie_acs_override")
    if old is None and fact is not KERNEL_CMDLINE:
        return []
    return [w for w in new.split() if w not in before and w.partition("=")[0] in about]
