"""Are the GPUs' BARs in the VM's IOMMU domain: the log of this VM's start, and the VFIO backend.

QEMU maps the BARs of other VFIO devices too and only warns when that fails. The type1 container follows such
mappings; iommufd rejects them without dma-buf export.

Source: QEMU hw/vfio/listener.c.
"""

import re

from agents.facts import ReadingKind
from agents.facts.host import VFIO_BACKEND, VFIO_ERRORS, VfioBackend, VfioError
from agents.facts.vm import VM_ID, VM_QEMU_ARGS
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.platform import Platform

GATE = "mapped"

_ON_BAR = re.compile(r"dma_map|IOAS_MAP|peer-to-peer transactions on BARs", re.I)
_TYPE1_EXPECTED = "mapped: the type1 container, which Proxmox uses, can map peer BARs (QEMU listener.c)"
_IOMMUFD_EXPECTED = "not mapped: iommufd rejects BARs unless kernel and QEMU export them as dma-buf"


def judge(situation: Situation, path: Path) -> Gate:
    facts = situation.facts
    if path is Path.NVLINK:
        return Gate(GATE, path, GateState.NOT_APPLICABLE, "NVLink does not pass the IOMMU")
    if situation.outside_kvm is Platform.BARE_METAL:
        return Gate(GATE, path, GateState.NOT_APPLICABLE, "bare metal: no VFIO in between")
    backend, log = _backend(facts), facts.best(VFIO_ERRORS)
    expected = _expected(situation, backend)
    if log is None or log.reading.kind is not ReadingKind.KNOWN:
        return Gate(GATE, path, GateState.UNKNOWN, "the log of this VM’s start was not read", (), expected)
    on_bars = mapping_errors(facts)
    if not on_bars and _of_others_alone(facts):
        why = "the start log that was read is another VM’s"
        return Gate(GATE, path, GateState.UNKNOWN, why, facts.refs(VFIO_ERRORS), expected)
    if on_bars:
        why = f"VFIO could not map peer BARs: {on_bars[0].text[:160]} ({len(on_bars)} lines)"
        return Gate(GATE, path, GateState.FAIL, why, facts.refs(VFIO_ERRORS))
    refs = facts.refs(VFIO_ERRORS, VFIO_BACKEND)
    if backend is VfioBackend.TYPE1 and log.reading.complete:
        why = "the log of the VM’s start shows no failed BAR mapping, and the backend is type1"
        return Gate(GATE, path, GateState.PASS, why, refs)
    lacking = (*log.reading.missing, *(() if backend else ("which backend the VM uses",)))
    why = "the log of the VM’s start shows no failed BAR mapping"
    why += f"; not read: {', '.join(lacking)}" if lacking else f"; the backend is {backend}"
    return Gate(GATE, path, GateState.UNKNOWN, why, refs, expected)


def _expected(situation: Situation, backend: VfioBackend | None) -> str | None:
    """Only QEMU's guests have VFIO below them; what another hypervisor maps is not known from here."""
    if backend is VfioBackend.IOMMUFD:
        return _IOMMUFD_EXPECTED
    return _TYPE1_EXPECTED if backend or situation.in_kvm else None


def mapping_errors(facts: Facts) -> tuple[VfioError, ...]:
    """Failed mappings of BARs at the start of this VM; a line without a VM may be this one's."""
    mine = {None, facts.value(VM_ID)}
    known = facts.value(VM_ID) is not None
    return tuple(
        error for error in facts.value(VFIO_ERRORS) or () if _on_bar(error) and (error.vm_id in mine or not known)
    )


def _of_others_alone(facts: Facts) -> bool:
    """Errors stand in the log, and each is another VM's: this VM's start may not be in it."""
    number, errors = facts.value(VM_ID), facts.value(VFIO_ERRORS) or ()
    return bool(errors) and number is not None and all(e.vm_id not in {None, number} for e in errors)


def _on_bar(error: VfioError) -> bool:
    return error.code in {-14, -22} or bool(_ON_BAR.search(error.text))


def _backend(facts: Facts) -> VfioBackend | None:
    """The running command line tells before the host's modules do."""
    command = facts.value(VM_QEMU_ARGS)
    if command and command.devices:
        used = any(device.iommufd for device in command.devices)
        return VfioBackend.IOMMUFD if used else VfioBackend.TYPE1
    newest = facts.best(VFIO_BACKEND)
    return facts.value(VFIO_BACKEND) if newest and newest.reading.complete else None


rung = Rung(
    GATE,
    judge,
    place=2,
    headline="At its start the VM could not map its GPUs’ memory for each other.",
    decided_by=("running_qemu_line",),
)
