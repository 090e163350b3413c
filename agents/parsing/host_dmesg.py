"""Messages of QEMU and the host's kernel about VFIO: start logs, `journalctl`, `dmesg`, QEMU's own output.

Texts: QEMU hw/vfio/listener.c, container.c and backends/iommufd.c: a peer's BAR that cannot be mapped is a warning,
and the VM starts. Linux drivers/pci/pci.c: "can't reserve" means that a driver of the host holds the region.
"""

import re
from dataclasses import dataclass

from agents.facts.host import HeldRegion, VfioBackend, VfioError
from agents.parsing.lines_with import lines_with
from agents.parsing.lspci import full_address

LINE_CAP = 2000

_QUOTE = re.compile(r"^(?:\s{0,16}>\s?)+")
_STAMP = re.compile(r"^(?:\[[^\]]{1,40}\]|\S{3,9}\s+\d+ [\d:]{8} \S+|\d{4}-\d\d-\d\dT\S+ \S+) ")
_BDF = re.compile(r"(?<![0-9a-fA-F:])([0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])(?![0-9a-f.])", re.I)
_DMA_MAP = re.compile(r"vfio_(?:legacy_|container_)?dma_map\(.{0,200}?\)\s{0,4}=\s{0,4}(-\d{1,4})\b")
_OTHER = re.compile(
    r"VFIO_MAP_DMA\b.{0,40}(?:failed|: )|IOMMU_IOAS_MAP(?:_FILE)? failed|"
    r"PCI peer-to-peer transactions on BARs are not supported|"
    r"vfio-pci \S{1,20}: BAR \d\b.{0,120}can't reserve"
)
_HELD = re.compile(
    r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]): BAR (?P<bar>[0-5])\b.{0,120}can't reserve",
    re.IGNORECASE,
)
_START_LOG = re.compile(r"^#{2,} start log of VM (\d{1,9})\b")
_SECTION = re.compile(r"^#{2,} ")
_END = re.compile(r"^(?:TASK (?:OK|WARNINGS)\b|log read to its end$)")
_QEMU_JOURNAL = re.compile(r"^#{2,} journal of QEMU\b|journalctl.{0,60} -t QEMU\b")
# A log may repeat a message thousands of times; the first one is enough.
ERROR_CAP = 200
_CONTAINER = re.compile(r"(?:^|\s)/dev/(vfio/vfio|iommu)\s*$")
_IOMMUFD = re.compile(r"IOMMU_IOAS_MAP|-object[= ]['\"]?iommufd\b|\biommufd=[\w-]+")
# Every match of the patterns above holds one of these.
_START_WORDS = (
    *("## ", "TASK OK", "TASK WARNINGS", "log read to its end", "QEMU", "dma_map(", "VFIO_MAP_DMA"),
    *("IOMMU_IOAS_MAP", "peer-to-peer", "can't reserve"),
)
_BACKEND_WORDS = ("/dev/vfio/vfio", "/dev/iommu", "IOMMU_IOAS_MAP", "iommufd")


@dataclass(frozen=True, slots=True)
class Start:
    """errors: each once; lines: the line on which each first appears.

    read: the text holds a successful start's log to its end; for vm_ids where the text names the VM. followed: the
    text also holds QEMU's messages after the start; firmware places the BARs only then.
    """

    errors: tuple[VfioError, ...]
    lines: tuple[int, ...]
    vm_ids: tuple[int, ...]
    read: bool
    followed: bool


def vfio_start(text: str) -> Start:
    """Mapping errors, and whether the text holds a start log that would show them."""
    errors: dict[VfioError, int] = {}
    ended: list[int] = []
    vm_id: int | None = None
    read = followed = False
    for number, raw in lines_with(text, _START_WORDS):
        line = _QUOTE.sub("", raw[:LINE_CAP]).strip()
        followed = followed or bool(_QEMU_JOURNAL.search(line))
        if start := _START_LOG.match(line):
            vm_id = int(start[1])
        elif _SECTION.match(line):
            vm_id = None
        elif _END.match(line):
            read = True
            ended += [vm_id] if vm_id is not None else []
        elif len(errors) < ERROR_CAP and (error := _error(line, vm_id)):
            errors.setdefault(error, number)
    vm_ids = tuple(dict.fromkeys(ended))
    return Start(tuple(errors), tuple(errors.values()), vm_ids, read, followed)


def vfio_backend(text: str) -> tuple[VfioBackend, int, bool] | None:
    """The backend, the line that shows it, and whether all such lines agree.

    By the container a QEMU process holds open (/dev/vfio/vfio is type1's, /dev/iommu iommufd's), or by
    messages and arguments that only iommufd has. Loaded modules say nothing about use.
    """
    backends: dict[VfioBackend, int] = {}
    for number, raw in lines_with(text, _BACKEND_WORDS):
        line = raw[:LINE_CAP]
        held = _CONTAINER.search(line)
        if held and held[1] == "vfio/vfio":
            backends.setdefault(VfioBackend.TYPE1, number)
        elif held or _IOMMUFD.search(line):
            backends.setdefault(VfioBackend.IOMMUFD, number)
    if not backends:
        return None
    backend = VfioBackend.IOMMUFD if VfioBackend.IOMMUFD in backends else VfioBackend.TYPE1
    return backend, backends[backend], len(backends) == 1


def held_regions(text: str) -> tuple[tuple[HeldRegion, ...], tuple[int, ...]]:
    """Regions that could not be reserved, each once, with its first line.

    Kernels since 6.10 put the region before the colon (drivers/pci/pci.c)."""
    regions: dict[HeldRegion, int] = {}
    for number, line in lines_with(text, ("can't reserve",)):
        if held := _HELD.search(line[:LINE_CAP]):
            region = HeldRegion(full_address(held["address"]), int(held["bar"]))
            regions.setdefault(region, number)
    return tuple(regions), tuple(regions.values())


def is_mapping_error(error: VfioError) -> bool:
    """Whether a mapping failed. A region that somebody on the host holds is another matter."""
    return "can't reserve" not in error.text


def _error(line: str, vm_id: int | None) -> VfioError | None:
    code, other = _DMA_MAP.search(line), _OTHER.search(line)
    if not code and not other:
        return None
    address = _BDF.search(line)
    bdf = address[1].lower() if address else None
    text = _STAMP.sub("", line)[:400]
    return VfioError(bdf, int(code[1]) if code else None, text, vm_id)
