"""NCCL's topology XML: NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE, the clouds' virtualTopology.xml.

NCCL 2.28, src/graph/xml.cc, topo.cc: <system> holds <cpu numaid>, those <pci busid link_speed link_width>, nested for
switches, with <gpu dev rank>, <nic> and <nvlink count> inside. In a VM link_speed may be empty and link_width is 0,
as sysfs has no link of the port above. The parser reads tag by tag, so that a cut file still counts.
"""

import re
from dataclasses import replace

from agents.facts.nccl import NcclTopology, TopologyGpu

_TAG = re.compile(
    r"<(?P<close>/)?(?P<name>system|cpu|pci|gpu|nvlink|net|nic)\b(?P<attributes>[^<>]{0,2000}?)(?P<empty>/)?>"
)
_ATTRIBUTE = re.compile(r"\b(\w{1,30})=\"([^\"]{0,200})\"")
_DEPTH = 16


def parse(text: str) -> tuple[NcclTopology, tuple[int, ...], bool] | None:
    """The topology, its GPUs' lines, and whether the end is missing; None when it holds no GPU."""
    reader = _Reader()
    line, at = 1, 0
    for tag in _TAG.finditer(text):
        line, at = line + text.count("\n", at, tag.start()), tag.start()
        reader.take(tag, line)
    if not reader.gpus:
        return None
    gpus = tuple(reader.gpus)
    topology = NcclTopology(gpus, reader.cpus, tuple(dict.fromkeys(reader.nics)))
    return topology, tuple(reader.lines), not reader.ended


class _Reader:
    """open: the <pci> elements around the present one, as (address, link)."""

    def __init__(self) -> None:
        self.gpus: list[TopologyGpu] = []
        self.lines: list[int] = []
        self.nics: list[str] = []
        self.open: list[tuple[str, str | None]] = []
        self.cpus = 0
        self.numa: int | None = None
        self.ended = False

    def take(self, tag: re.Match[str], line: int) -> None:
        name = tag["name"]
        if tag["close"]:
            self._close_element(name)
            return
        attributes = dict(_ATTRIBUTE.findall(tag["attributes"]))
        if name == "cpu":
            self.cpus += 1
            self.numa, self.open = _whole_number(attributes.get("numaid")), []
        elif name == "pci" and not tag["empty"] and len(self.open) < _DEPTH:
            self.open.append((attributes.get("busid", "").lower(), _link(attributes)))
        elif name == "gpu":
            self._add_gpu(attributes, line)
        elif name == "nvlink" and self.gpus:
            count = self.gpus[-1].nvlinks + (_whole_number(attributes.get("count")) or 0)
            self.gpus[-1] = replace(self.gpus[-1], nvlinks=count)
        elif name == "net":
            self.nics.append(attributes.get("name", "?"))

    def _add_gpu(self, attributes: dict[str, str], line: int) -> None:
        address, link = self.open[-1] if self.open else ("", None)
        above = tuple(bridge for bridge, _ in self.open[:-1])
        numa = self.numa if self.numa is not None and self.numa >= 0 else None
        rank = _whole_number(attributes.get("rank"))
        self.gpus.append(TopologyGpu(address, rank, numa, link, 0, above))
        self.lines.append(line)

    def _close_element(self, name: str) -> None:
        if name == "pci" and self.open:
            self.open.pop()
        elif name == "system":
            self.ended = True


def _link(attributes: dict[str, str]) -> str | None:
    speed, width = attributes.get("link_speed", "").strip(), _whole_number(attributes.get("link_width")) or 0
    return f"{speed} x{width}" if speed and width > 0 else None


def _whole_number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,9}", text) else None
