"""Can the hardware do it: a verified copy without a VM, or active NVLinks.

Source: Linux drivers/pci/p2pdma.c; NVIDIA Fabric Manager user guide.
"""

from collections.abc import Iterator

from agents.facts import ReadingKind
from agents.facts.bench import DELIVERY
from agents.facts.gpu import FABRIC
from agents.facts.host import PLATFORM
from agents.facts.p2p import P2P_NVLINK, P2P_READ, TOPOLOGY
from agents.facts.platform import VIRT_KIND
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.gates import driver
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation

GATE = "fabric"


def judge(situation: Situation, path: Path) -> Gate:
    return _nvlink(situation) if path is Path.NVLINK else _pcie(situation.facts)


def _nvlink(situation: Situation) -> Gate:
    """State and status are nvidia-smi's Fabric section; "Completed" once the fabric manager or IMEX
    has set the GPU up (NVIDIA Fabric Manager user guide)."""
    facts = situation.facts
    fabric, state = facts.value(FABRIC), situation.fabric_state
    refs = facts.refs(FABRIC)
    if fabric and state:
        status = fabric.status or "Success"
        if _allowed_since(situation):
            why = f"the NVSwitch fabric’s state was {state} before a change; read again, it tells"
            return Gate(GATE, Path.NVLINK, GateState.UNKNOWN, why, refs)
        if state.lower() != "completed":
            why = f"the NVSwitch fabric’s state is {state}: fabric manager or IMEX has not finished"
            return Gate(GATE, Path.NVLINK, GateState.FAIL, why, refs)
        if status.lower() not in {"success", "n/a"}:
            return Gate(GATE, Path.NVLINK, GateState.FAIL, f"the NVSwitch fabric completed with status {status}", refs)
        return Gate(GATE, Path.NVLINK, GateState.PASS, "the NVSwitch fabric is Completed", refs)
    count = len(situation.pairs.nvlink)
    why = f"active NVLinks are listed on {count} ordered pairs"
    return Gate(GATE, Path.NVLINK, GateState.PASS, why, facts.refs(TOPOLOGY) or facts.refs(P2P_NVLINK))


def _allowed_since(situation: Situation) -> bool:
    reread = situation.facts.newer(P2P_READ, FABRIC) or situation.facts.newer(P2P_NVLINK, FABRIC)
    return reread and driver.state(situation, Path.NVLINK) is GateState.PASS


def _pcie(facts: Facts) -> Gate:
    for item in _without_a_vm(facts):
        checked = item.reading.value.pairs if item.reading.value else {}
        wrong = [pair for pair, right in checked.items() if not right]
        if wrong:
            why = f"without a VM, bytes did not arrive on {', '.join(sorted(wrong))}"
            return Gate(GATE, Path.PCIE, GateState.FAIL, why, item.refs)
        if checked:
            why = f"without a VM, bytes arrived on {len(checked)} checked pairs"
            return Gate(GATE, Path.PCIE, GateState.PASS, why, item.refs)
    why = "no verified copy on this machine without a VM"
    return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why, (), _expected(facts))


def _without_a_vm(facts: Facts) -> Iterator[Sourced]:
    """Delivery checks taken in an epoch in which the machine said that it is no VM."""
    bare = facts.exception(_bare_epochs)
    for item in facts.all(DELIVERY) if bare else ():
        if item.epoch in bare and item.reading.kind is ReadingKind.KNOWN:
            yield item


def _bare_epochs(facts: Facts) -> set[int]:
    return {s.epoch for s in facts.all(VIRT_KIND) if s.reading.value == "none"}


def _expected(facts: Facts) -> str:
    """Linux drivers/pci/p2pdma.c accepts every AMD Zen host bridge."""
    platform = facts.value(PLATFORM)
    cpu = (platform.cpu or "") if platform else ""
    if "EPYC" in cpu or "Ryzen" in cpu:
        return (
            "possible: AMD Zen forwards between root ports and root complexes (Linux p2pdma.c), and "
            "separate IOMMU groups do not forbid it inside one VM"
        )
    return "not known for this platform; a verified copy from a live medium without a VM decides"


rung = Rung(
    GATE,
    judge,
    place=1,
    headline="Without a VM, copies between the GPUs did not arrive.",
    outlives_changes=True,  # the hardware stays
    decided_by=("bare_metal_test",),
)
