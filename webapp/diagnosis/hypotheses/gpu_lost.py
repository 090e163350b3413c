"""GPUs that should be there do not answer: fewer in the driver than on the bus, or fallen off it.

Xid 79: the GPU has fallen off the bus. Revision ff: its config space reads ones.

Source: NVIDIA Xid catalogue.
"""

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS, PCI_GPUS, XID_EVENTS, Gpu, PciGpu
from agents.facts.vm import VM_HOSTPCI
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, Severity
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.option import because
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.gpus import Listing

FALLEN_OFF = 79
SOURCE = "qemu-server, PCI.pm, address map"


def assess(case: Case) -> Verdict:
    facts, seen = case.facts, case.situation.listing
    all_ones = case.situation.exception(lambda situation: _all_ones(situation, seen))
    for_, fell = [*_unreachable(facts), *all_ones], _fell_off(facts)
    for_ += [seen.claim] if seen and seen.short else []
    if for_:
        return Verdict(VerdictKind.SUPPORTED, (*for_, *fell))
    if seen and seen.every:
        return _all_answer(facts, seen, fell)
    if fell:
        return Verdict(VerdictKind.SUPPORTED, fell)
    return Verdict(VerdictKind.OPEN, missing=probes_for(facts, GPU_COUNT_SMI, GPU_COUNT_PCI))


def _all_answer(facts: Facts, seen: Listing, fell: tuple[Claim, ...]) -> Verdict:
    """A GPU that fell off the bus comes back with a reset or a boot, and may go again."""
    log = facts.best(XID_EVENTS) if fell else None
    if log and log.epoch >= seen.driver.epoch:
        kind = VerdictKind.OPEN if seen.follows(log) else VerdictKind.SUPPORTED
        return Verdict(kind, fell, (seen.claim,))
    return Verdict(VerdictKind.REFUTED, fell, (seen.claim,))


def _unreachable(facts: Facts) -> list[Claim]:
    lost = [str(gpu.index) for gpu in facts.value(GPUS, where=_any_lost) or () if gpu.lost]
    text = f"the driver lists GPU {', '.join(lost)} and cannot reach it"
    return [measured_claim(text, facts.refs(GPUS))] if lost else []


def _all_ones(situation: Situation, seen: Listing | None) -> list[Claim]:
    facts = situation.facts
    on_bus = facts.value(PCI_GPUS, where=_any_ones) or ()
    bus = facts.best(PCI_GPUS) if on_bus else None
    if bus and seen and seen.every and seen.driver.epoch > bus.epoch:
        return []
    gone = [gpu.pci_address for gpu in on_bus if _reads_ones(gpu)]
    claim = measured_claim(f"config space of {', '.join(gone)} reads all ones (revision ff)", facts.refs(PCI_GPUS))
    return [claim, *_on_the_host(situation, gone)] if gone else []


def _any_lost(gpus: tuple[Gpu, ...]) -> bool:
    return any(gpu.lost for gpu in gpus)


def _any_ones(gpus: tuple[PciGpu, ...]) -> bool:
    return any(map(_reads_ones, gpus))


def _reads_ones(gpu: PciGpu) -> bool:
    return (gpu.revision or "").lower() == "ff"


def _fell_off(facts: Facts) -> tuple[Claim, ...]:
    if not facts.value(XID_EVENTS, where=lambda events: any(event.code == FALLEN_OFF for event in events)):
        return ()
    text = f"the kernel log has Xid {FALLEN_OFF}: a GPU has fallen off the bus"
    return (measured_claim(text, facts.refs(XID_EVENTS)),)


def _on_the_host(situation: Situation, gone: list[str]) -> list[Claim]:
    """Which card to look at, where the VM's configuration tells."""
    known = [(address, device) for address in gone if (device := situation.host_device(address))]
    refs = situation.facts.refs(PCI_GPUS, VM_HOSTPCI)
    return [
        because(
            f"{address} is hostpci{slot.slot}, the host’s {where}: look at that card’s seat, riser and power",
            SOURCE,
            refs,
        )
        for address, (slot, where) in known
    ]


hypothesis = Hypothesis(
    __name__,
    "GPUs that should be there do not answer.",
    assess,
    "“GPUs the driver lists” has every GPU of “PCI devices” within reach, and “Kernel log” no "
    f"Xid {FALLEN_OFF} since the last change.",
    rank=130,
    plain="At least one GPU that should be there does not answer.",
    headline="GPUs that should be there do not answer: that comes before any question of speed.",
    severity=Severity.BROKEN,
    decided_by=("gpu_count",),
)
