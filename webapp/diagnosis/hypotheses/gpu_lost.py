"""GPUs that should be there do not answer: fewer in the driver than on the bus, or fallen off it.

Xid 79: the GPU has fallen off the bus (NVIDIA Xid catalogue). Revision ff: its config space reads ones.
"""

from __future__ import annotations

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, PCI_GPUS, XID_EVENTS
from agents.facts.vm import VM_HOSTPCI
from webapp.diagnosis.advising import because
from webapp.diagnosis.asking import asks
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.device_matching import host_device
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis

FALLEN_OFF = 79
SOURCE = "qemu-server, PCI.pm, address map"


def assess(case: Case) -> Verdict:
    facts = case.facts
    for_ = [*_unreachable(facts), *_off_the_bus(facts)]
    listed, on_bus = facts.value(GPU_COUNT_SMI), facts.value(GPU_COUNT_PCI)
    refs = facts.refs(GPU_COUNT_SMI, GPU_COUNT_PCI)
    if listed is not None and on_bus is not None and listed < on_bus:
        text = f"the driver lists {listed} of the {on_bus} GPUs on the bus"
        for_.append(Claim(text, refs, None, Basis.MEASURED))
    if for_:
        return Verdict(VerdictKind.SUPPORTED, tuple(for_))
    if listed and listed == on_bus:
        text = f"all {listed} GPUs on the bus are listed by the driver"
        claim = Claim(text, refs, None, Basis.MEASURED)
        return Verdict(VerdictKind.REFUTED, (), (claim,))
    return Verdict(VerdictKind.OPEN, missing=asks(facts, GPU_COUNT_SMI, GPU_COUNT_PCI))


def _unreachable(facts: Facts) -> list[Claim]:
    lost = [str(gpu.index) for gpu in facts.value(GPUS) or () if gpu.lost]
    text = f"the driver lists GPU {', '.join(lost)} and cannot reach it"
    return [Claim(text, facts.refs(GPUS), None, Basis.MEASURED)] if lost else []


def _off_the_bus(facts: Facts) -> list[Claim]:
    found = []
    gone = [
        g.pci_address for g in facts.value(PCI_GPUS) or () if (g.revision or "").lower() == "ff"
    ]
    if gone:
        text = f"config space of {', '.join(gone)} reads all ones (revision ff)"
        found.append(Claim(text, facts.refs(PCI_GPUS), None, Basis.MEASURED))
        found += _on_the_host(facts, gone)
    if any(event.code == FALLEN_OFF for event in facts.value(XID_EVENTS) or ()):
        text = f"the kernel log has Xid {FALLEN_OFF}: a GPU has fallen off the bus"
        found.append(Claim(text, facts.refs(XID_EVENTS), None, Basis.MEASURED))
    return found


def _on_the_host(facts: Facts, gone: list[str]) -> list[Claim]:
    """Which card to look at, where the VM's configuration tells."""
    known = [(address, device) for address in gone if (device := host_device(facts, address))]
    refs = facts.refs(PCI_GPUS, VM_HOSTPCI)
    return [
        because(
            f"{address} is hostpci{slot.slot}, the host’s {where}: look at that card’s seat, riser and "
            "power",
            SOURCE,
            refs,
        )
        for address, (slot, where) in known
    ]


hypothesis = Hypothesis(__name__, "GPUs that should be there do not answer.", assess)
