"""Lists of one kind of thing in words: what of them decides, not every field of the first three."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agents.facts.gpu import BarFailure, Clique, GpuNuma, PcieLink, XidEvent
from agents.facts.host import CpuGovernor, GpuPath, IommuGroup, PciMapping, Platform
from agents.facts.platform import Iommu, NumaNode, SharedMemory

NAMED = 8  # of one kind; the evidence has them all
_MAKERS = {"amd": "AMD", "intel": "Intel"}
# What readers name as missing by the name of a field; stored readings keep such names.
_FIELDS = {
    "enabled": "whether it is on",
    "default_domain": "its default domain",
    "interrupt_remapping": "whether interrupts are remapped",
    "vendor": "the maker",
    "board": "the board",
    "cpu": "the processor",
    "sockets": "the number of sockets",
}


def lacking(missing: Iterable[str]) -> str:
    """The parts that a reading lacks, in words: "its default domain, row GPU7"."""
    return ", ".join(_FIELDS.get(part, part) for part in missing)


def counted(values: Iterable[object], what: str) -> str:
    """ "NS on 56 of 56 ordered pairs", the most frequent first."""
    counts = Counter(str(v) for v in values)
    total = sum(counts.values())
    return ", ".join(f"{code} on {n} of {total} {what}" for code, n in counts.most_common())


def _counted(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or f'{one}s'}"


def _memory(mib: int) -> str:
    return f"{mib / 1024:.4g} GiB" if mib >= 1024 else f"{mib} MiB"


def _state_word(state: bool | None) -> str:
    return "not said" if state is None else "on" if state else "off"


def _paths(items: Sequence[GpuPath]) -> str:
    roots = Counter(item.root_complex for item in items)
    switched = sum(item.switch is not None for item in items)
    text = f"{_counted(len(items), 'GPU')} on {_counted(len(roots), 'root complex', 'root complexes')}"
    places = ", ".join(f"{root}: {n}" for root, n in roots.items())
    return f"{text}{f', {switched} behind a switch' if switched else ''} ({places})"


def _groups(items: Sequence[IommuGroup]) -> str:
    """Whose devices share one decides what can be passed through alone: those are named."""
    shared = [item for item in items if len(item.devices) > 1]
    named = (f"group {item.group}: {_first_names(item.devices)}" for item in shared[:NAMED])
    text = f"{_counted(len(items), 'group')}, {len(shared) or 'none'} with more than one device"
    return "; ".join((text, *named, *(["…"] if shared[NAMED:] else [])))


def _mappings(items: Sequence[PciMapping]) -> str:
    by_mapping: dict[str, list[PciMapping]] = {}
    for item in items:
        by_mapping.setdefault(item.mapping, []).append(item)
    return "; ".join(f"{name}: {_mapping_text(devices)}" for name, devices in by_mapping.items())


def _mapping_text(devices: Sequence[PciMapping]) -> str:
    kinds = sorted({item.vendor_device for item in devices if item.vendor_device})
    groups = sorted({item.iommu_group for item in devices if item.iommu_group is not None})
    parts = (
        f"{_counted(len(devices), 'device')} at {_first_names([item.path for item in devices])}",
        ", ".join(kinds),
        f"IOMMU group{'s' if groups[1:] else ''} {_first_names([str(n) for n in groups])}" if groups else "",
    )
    return ", ".join(filter(None, parts))


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (" …" if names[NAMED:] else "")


def _failures(items: Sequence[BarFailure]) -> str:
    """The kernel says one region several ways; a line that names no device is counted apart."""
    regions = {(item.pci_address, item.bar) for item in items if item.pci_address}
    devices = len({address for address, _ in regions})
    where = f" about {_counted(len(regions), 'region')} of {_counted(devices, 'device')}"
    return f"{_counted(len(items), 'line')}{where if regions else ''}; first: {items[0].text}"


def _xids(items: Sequence[XidEvent]) -> str:
    counts = Counter((item.code, item.pci_address or "an unnamed GPU") for item in items)
    return ", ".join(f"Xid {code} on {gpu}, {n} ×" for (code, gpu), n in counts.items())


def _cliques(items: Sequence[Clique]) -> str:
    return counted((_clique(item) for item in items), "GPUs")


def _clique(item: Clique) -> str:
    if item.clique_id is not None:
        return f"clique {item.clique_id}"
    return "a clique without its number" if item.offset is not None else "no clique seen"


def _links(items: Sequence[PcieLink]) -> str:
    known = (f"generation {item.gen or '?'} × {item.width or '?'}" for item in items)
    return counted(known, "devices")


def _gpu_numa(items: Sequence[GpuNuma]) -> str:
    nodes = (i.numa_node for i in items)
    return counted(("no node reported" if n is None else f"node {n}" for n in nodes), "GPUs")


def _nodes(items: Sequence[NumaNode]) -> str:
    return f"{_counted(len(items), 'node')}: " + "; ".join(
        f"node {item.id}, CPUs {item.cpus}" + (f", {_memory(item.memory_mib)}" if item.memory_mib is not None else "")
        for item in items
    )


def _iommu(value: Iommu) -> str:
    parts = (
        _state_word(value.enabled),
        _MAKERS.get(value.vendor or "", value.vendor),
        "emulated" if value.emulated else None,
        _counted(value.units, "unit") if value.units is not None else None,
        f"interrupt remapping {_state_word(value.interrupt_remapping)}",
        f"default domain {value.default_domain or 'not said'}",
    )
    return ", ".join(filter(None, parts))


def _governor(value: CpuGovernor) -> str:
    text = counted(Counter(value.governors).elements(), "CPUs")
    return f"{text}; driver {value.driver}" if value.driver else text


def _platform(value: Platform) -> str:
    sockets = _counted(value.sockets, "socket") if value.sockets is not None else None
    board = " ".join(filter(None, (value.vendor, value.board)))
    return ", ".join(filter(None, (board, value.cpu, sockets)))


def _shared_memory(value: SharedMemory) -> str:
    used = f", {_memory(value.used_mib)} used" if value.used_mib is not None else ""
    return f"{_memory(value.size_mib)}{used}"


LISTS: Mapping[type, Callable[[Any], str]] = {
    BarFailure: _failures,
    Clique: _cliques,
    GpuNuma: _gpu_numa,
    GpuPath: _paths,
    IommuGroup: _groups,
    NumaNode: _nodes,
    PciMapping: _mappings,
    PcieLink: _links,
    XidEvent: _xids,
}
ONES: Mapping[type, Callable[[Any], str]] = {
    CpuGovernor: _governor,
    Iommu: _iommu,
    Platform: _platform,
    SharedMemory: _shared_memory,
}
