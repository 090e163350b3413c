"""The clique of each passed-through GPU, in and out of a VM's args.

`-set device.hostpciN.x-nv-gpudirect-clique=ID` names a device by its QEMU id, which is `hostpciN` only
for an entry of one function (qemu-server 9.2.6, PCI.pm; QEMU hw/vfio/pci-quirks.c: ids 0 to 15).
"""

import re

from agents.facts.host import GPU_PATHS, IOMMU_GROUPS, PCI_MAPPINGS, PLATFORM, PciMapping
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts.model import ScriptError
from webapp.diagnosis.scripts.values import checked, hostpci, qemu_words
from webapp.diagnosis.scripts.vm_state import VmState
from webapp.diagnosis.situation import qemu_args

_WORDS = re.compile(
    rf"(?:^|(?<=\s))(?:-set\s+(['\"]?)device\.[A-Za-z0-9_.-]+\.{qemu_args.PROPERTY}=\w+\1"
    rf"|-global\s+(['\"]?)vfio-pci\.{qemu_args.PROPERTY}=\w+\2)(?:\s+|$)"
)


def with_cliques(vm: VmState, slots: tuple[str, ...]) -> str:
    """args with a clique for each of these devices; what is there already stays, word for word."""
    args = qemu_words(vm.get("args"))
    present = qemu_args.cliques(qemu_args.split(args) or (), slots)
    ids = _clique_ids(vm, slots, set(present.values()))
    missing = [f"-set device.{slot}.{qemu_args.PROPERTY}={ids[slot]}" for slot in slots if slot not in present]
    return " ".join(part for part in (args.strip(), *missing) if part)


def without_cliques(vm: VmState) -> str:
    """args without any clique. Raises ScriptError where one is written in another way."""
    args = qemu_words(vm.get("args"))
    left = _WORDS.sub("", args).strip()
    if qemu_args.PROPERTY in left:
        raise ScriptError(
            "The clique in the VM's args is not written as -set or -global, so it is taken out by hand: "
            f"`qm set {vm.id} --args '…'` with the rest of args."
        )
    return left


def gpu_slots(vm: VmState) -> tuple[str, ...]:
    """The hostpci entries that may be an NVIDIA GPU by what is known here. The script checks vendor and class of
    each on the host."""
    mappings, addresses = _mapping_vendors(vm.facts)
    return tuple(s for s in vm.slots if _may_be_gpu(vm.get(s), mappings, addresses))


def explicit(vm: VmState, slot: str) -> str:
    """The hostpci line with its function named: `-set` cannot address a whole device ("0000:01:00").

    Raises ScriptError for several addresses, or a mapping of whole devices, whose ids QEMU numbers.
    """
    kind, properties = hostpci(vm.get(slot))
    if kind == "mapping":
        _check_mapping(vm, slot, properties["mapping"])
        return vm.get(slot)
    address = properties["host"]
    if ";" in address:
        text = f"{slot} passes several functions, {address}, in one entry"
        raise ScriptError(f"{text}: give each its own hostpci entry first; QEMU numbers their ids.")
    return vm.get(slot) if "." in address else vm.get(slot).replace(address, f"{address}.0", 1)


def _check_mapping(vm: VmState, slot: str, mapping: str) -> None:
    devices = [m for m in vm.facts.value(PCI_MAPPINGS) or () if m.mapping == mapping]
    for device in devices:
        if ";" in device.path or "." not in device.path:
            raise ScriptError(
                f"The mapping {mapping} of {slot} names whole devices ({checked_path(device)}); QEMU then "
                "numbers their ids and -set cannot address them. Name the function in the mapping "
                "(…:00.0) first, under Datacenter, Resource Mappings."
            )


def checked_path(mapping: PciMapping) -> str:
    return ";".join(checked("a PCI address", part) for part in mapping.path.split(";"))


def _clique_ids(vm: VmState, slots: tuple[str, ...], present: set[int]) -> dict[str, int]:
    """One id for all where one is set already, on AMD, on one socket, or where nothing says otherwise;
    else one for each memory node: not every Intel root complex forwards peer traffic to another's.
    """
    if len(present) == 1:
        return dict.fromkeys(slots, present.pop())
    if len(present) > 1:
        raise ScriptError("The VM has several cliques already; which one a further GPU joins is yours.")
    nodes = {path.pci_address: path.numa_node for path in vm.facts.value(GPU_PATHS) or ()}
    spread = sorted({node for node in nodes.values() if node is not None})
    platform = vm.facts.value(PLATFORM)
    amd = platform is not None and "AMD" in f"{platform.vendor} {platform.cpu}"
    if amd or len(spread) < 2:
        return dict.fromkeys(slots, 0)
    return {slot: spread.index(_numa_node(vm, slot, nodes)) for slot in slots}


def _numa_node(vm: VmState, slot: str, nodes: dict[str, int | None]) -> int:
    kind, properties = hostpci(vm.get(slot))
    if kind == "mapping":
        paths = [m.path for m in vm.facts.value(PCI_MAPPINGS) or () if m.mapping == properties[kind]]
        address = paths[0] if len(paths) == 1 else ""
    else:
        address = explicit(vm, slot).split(",")[0].removeprefix("host=").lower()
    node = nodes.get(address if address.count(":") == 2 else f"0000:{address}")
    if node is None:
        raise ScriptError(
            f"The GPUs hang on several sockets, which need a clique each, and {slot} has no fixed GPU: "
            "give every slot a mapping of its own, or a raw address, first."
        )
    return node


def _mapping_vendors(facts: Facts) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Vendor ids by mapping, and lspci's name by address."""
    mappings: dict[str, set[str]] = {}
    for mapping in facts.value(PCI_MAPPINGS) or ():
        if mapping.vendor_device:
            mappings.setdefault(mapping.mapping, set()).add(mapping.vendor_device[:4].lower())
    names = {
        address: name
        for group in facts.value(IOMMU_GROUPS) or ()
        for address, name in zip(group.devices, group.names, strict=False)
    }
    return mappings, names


def _may_be_gpu(value: str, mappings: dict[str, set[str]], names: dict[str, str]) -> bool:
    kind, properties = hostpci(value)
    if kind == "mapping":
        return "10de" in mappings.get(properties[kind], {"10de"})
    address = properties["host"].split(";")[0].lower()
    full = address if address.count(":") == 2 else f"0000:{address}"
    named = next((n for a, n in names.items() if a.startswith(full) and n), "NVIDIA")
    return "nvidia" in named.lower() and "audio" not in named.lower()
