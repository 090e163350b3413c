"""Does the hypervisor promise P2P: the GPUDirect clique on every GPU.

QEMU writes it into config space; the guest driver asks for it before anything else.

Source: QEMU hw/vfio/pci-quirks.c, x-nv-gpudirect-clique; NVIDIA open kernel modules 595.45.04, hypervisor.c
and p2p_caps.c.
"""

from collections.abc import Callable, Iterator
from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.gpu import CLIQUE_CAPABILITY, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.host import GPU_PATHS, PCI_MAPPINGS
from agents.facts.p2p import P2P_NVLINK, P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VM_HOSTPCI, VM_ID, VM_QEMU_ARGS, HostPci
from webapp.diagnosis.case import Gate, GateState, Path
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rung import Rung
from webapp.diagnosis.situation import Situation, vm_readings

GATE = "granted"
_SHOW_GPUS: tuple[Fact[Any], ...] = (
    GPUS,
    GPU_COUNT_SMI,
    GPU_COUNT_PCI,
    P2P_READ,
    P2P_WRITE,
    P2P_NVLINK,
    TOPOLOGY,
    GPU_PATHS,
)


def judge(situation: Situation, path: Path) -> Gate:
    if path is Path.NVLINK:
        return Gate(GATE, path, GateState.NOT_APPLICABLE, "the clique is about PCIe; this is NVLink")
    where = situation.outside_kvm
    if where:
        cloud = situation.cloud
        why = f"{cloud}’s hypervisor: its settings are not this operator’s" if cloud else ""
        return Gate(GATE, path, GateState.NOT_APPLICABLE, why or f"not a KVM guest: {where.words}")
    return next((gate for gate in _looks(situation) if gate), None) or _not_looked(situation)


def turned_since(situation: Situation, path: Path, answer: GateState) -> Gate | None:
    """What was found of the clique after a change, where the driver’s older answer is not what it gives
    then: a refusal before the clique, an OK before it was taken away."""
    facts = situation.facts
    driver_answer = P2P_READ if facts.value(P2P_READ) else P2P_WRITE
    newer = [look for look in (CLIQUE_CAPABILITY, VM_QEMU_ARGS, VM_CLIQUE) if facts.newer(look, driver_answer)]
    if path is Path.NVLINK or not newer or not situation.in_kvm:
        return None
    gate = judge(situation, path)
    if answer is GateState.FAIL:
        set_since = facts.value(VM_CLIQUE)
        granted = gate.state is GateState.PASS or (gate.state is GateState.UNKNOWN and set_since)
        return gate if granted else None
    return gate if gate.state is GateState.FAIL else None


def _looks(situation: Situation) -> Iterator[Gate | None]:
    """The newest look first; of one epoch the guest's, then the running line's, then the config's."""
    looks: list[tuple[Fact[Any], Callable[[Situation], Gate | None]]] = [
        (CLIQUE_CAPABILITY, _in_the_guest),
        (VM_QEMU_ARGS, _in_the_running_line),
        (VM_CLIQUE, _in_the_config),
    ]
    seen = [(s.epoch, look) for fact, look in looks if (s := situation.facts.best(fact))]
    for _, look in sorted(seen, key=lambda pair: pair[0], reverse=True):
        yield look(situation)


def _in_the_guest(situation: Situation) -> Gate | None:
    facts = situation.facts
    capabilities = facts.value(CLIQUE_CAPABILITY)
    if not capabilities:
        return None
    have = [c for c in capabilities if c.present or c.clique_id is not None]
    refs = facts.refs(CLIQUE_CAPABILITY)
    if len(have) < len(capabilities):
        why = f"{len(have)} of {len(capabilities)} GPUs carry the clique capability in the guest"
        return Gate(GATE, Path.PCIE, GateState.FAIL, why, refs)
    total = facts.value(GPU_COUNT_PCI) or situation.gpu_count or len(capabilities)
    if len(capabilities) < total:
        why = f"the clique capability was seen on {len(capabilities)} of {total} GPUs; the others were not read"
        return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why, refs, "the same on the others")
    ids = sorted({c.clique_id for c in have if c.clique_id is not None})
    why = f"all {len(capabilities)} GPUs carry the clique capability" + _which(ids)
    return Gate(GATE, Path.PCIE, GateState.PASS, why, refs)


def _which(ids: list[int]) -> str:
    if len(ids) > 1:
        return f"; cliques {', '.join(map(str, ids))}, so nothing is granted across them"
    return f", clique {ids[0]}" if ids else ""


def _in_the_running_line(situation: Situation) -> Gate | None:
    facts = situation.facts
    command, newest = facts.value(VM_QEMU_ARGS), facts.best(VM_QEMU_ARGS)
    if command is None or newest is None or not (command.devices or command.text):
        return None
    cliques = vm_readings.running_cliques(command)
    refs = facts.refs(VM_QEMU_ARGS)
    total = min(situation.gpu_count or len(command.devices), len(command.devices))
    if cliques and len(cliques) >= total:
        why = f"the running QEMU command line sets a clique on {len(cliques)} devices"
        return Gate(GATE, Path.PCIE, GateState.PASS, why + _which(sorted({*cliques.values()})), refs)
    if not newest.reading.complete:
        return None
    why = f"the running QEMU command line sets a clique on {len(cliques)} of {total} GPUs"
    return Gate(GATE, Path.PCIE, GateState.FAIL, why, refs)


def _in_the_config(situation: Situation) -> Gate | None:
    """Only an absence counts here: what is configured need not be what runs.

    A VM that passes fewer than two devices through has no peers to grant.
    """
    facts = situation.facts
    if facts.kind(VM_HOSTPCI) is ReadingKind.ABSENT or _devices(facts) == 1:
        return None
    kind = facts.kind(VM_CLIQUE)
    number = facts.value(VM_ID)
    name = "the VM" if number is None else f"VM {number}"
    refs = facts.refs(VM_CLIQUE)
    if kind is ReadingKind.ABSENT and not _gpus_passed(facts):
        why = f"{name}’s configuration has no clique; whether the devices it passes are GPUs was not read"
        return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why, refs, "absent, since no clique is configured")
    if kind is ReadingKind.ABSENT:
        what = "no args" if facts.kind(VM_ARGS) is ReadingKind.ABSENT else "no clique in its args"
        why = f"{name}’s configuration has {what}; the running command line was not read"
        return Gate(GATE, Path.PCIE, GateState.FAIL, why, refs)
    if kind is ReadingKind.UNREADABLE:
        why = f"{name}’s args have unpaired quotes, so Proxmox drops them (qemu-server 9.2.6)"
        return Gate(GATE, Path.PCIE, GateState.FAIL, why, refs)
    cliques = facts.value(VM_CLIQUE)
    if not cliques:
        return None
    why = f"{name}’s configuration sets a clique on {len(cliques)} devices; nothing shows that it runs"
    missing = _devices(facts) - len(cliques)
    expected = "granted once the VM was started with it" if missing <= 0 else f"{missing} lack it"
    return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why, refs, expected)


def _gpus_passed(facts: Facts) -> bool:
    """Whether anything shows that this is about GPUs; a mapping's name or an address does not tell.

    A configuration that names addresses was given as a GPU machine's; only mappings need be looked up.
    """
    devices = facts.value(VM_HOSTPCI) or ()
    if any(not device.mapping for device in devices):
        return True
    if not facts.exception(lambda facts: _mapped_gpus(facts, devices)):
        return facts.any_of(*_SHOW_GPUS)
    return True


def _mapped_gpus(facts: Facts, devices: tuple[HostPci, ...]) -> bool:
    if any(facts.peek(fact) for fact in _SHOW_GPUS):
        return False
    vendors = {m.mapping: m.vendor_device or "" for m in facts.value(PCI_MAPPINGS) or ()}
    return any(vendors.get(device.mapping or "", "").startswith("10de") for device in devices)


def _devices(facts: Facts) -> int:
    """Functions of one device are one; what a mapping draws is a device of its own."""
    devices = facts.value(VM_HOSTPCI) or ()
    named = {a.partition(".")[0] for device in devices for a in device.addresses}
    return len(named) + sum(not device.addresses for device in devices)


def _not_looked(situation: Situation) -> Gate:
    why = "neither the guest’s config space nor the QEMU command line was looked at"
    reads, writes = situation.aside.codes()
    answers = {*reads.values(), *writes.values()}
    expected = None
    if not answers or not situation.aside.in_kvm:
        return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why)
    if P2pCode.NS in answers:
        expected = (
            "absent, since in a KVM guest the driver answers NS when there is no clique "
            "(NVIDIA open kernel modules 595.45.04, p2p_caps.c)"
        )
    elif answers == {P2pCode.OK}:
        expected = "present, since in a KVM guest the driver answers OK over PCIe only with a clique"
    return Gate(GATE, Path.PCIE, GateState.UNKNOWN, why, (), expected)


rung = Rung(
    GATE,
    judge,
    place=3,
    headline="Nothing grants the VM’s GPUs peer-to-peer; what their driver says was not read.",
    decided_by=("clique_capability", "running_qemu_line"),
)
