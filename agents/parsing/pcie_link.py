"""PCI Express links: `lspci -vv` (LnkCap, LnkSta) and our own loop over sysfs.

lspci (pciutils ls-caps.c): "LnkCap: Port #0, Speed 32GT/s, Width x16, …" and "LnkSta: Speed 2.5GT/s
(downgraded), Width x8 (downgraded)"; before 3.6 without the words in brackets. sysfs (Linux,
Documentation/ABI/testing/sysfs-bus-pci): current_link_speed "32.0 GT/s PCIe" or "Unknown",
current_link_width "16". Our loop prints `0000:01:00.0 vendor=0x10de class=0x030200 speed=32.0_GT/s_PCIe
width=16 max_speed=… max_width=16`, "_" for a blank.
"""

import re
from collections.abc import Iterable

from agents.facts.gpu import PcieLink
from agents.parsing import lspci, sysfs_pci
from agents.parsing.lspci import LINE_CAP

# GT/s of each generation, PCI Express base specification 6.0.
_GENERATIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6, "128": 7}
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?)[ _]?GT/s")
_LINK = re.compile(r"^[\s>|]*Lnk(?P<which>Cap|Sta):\s(?P<rest>.{0,300})")
_WIDTH = re.compile(r"\bWidth x(\d{1,2})\b")
_WORD = re.compile(r"\b(max_speed|max_width|speed|width)=(\S*)")
_MOST_LANES = 32
_TYPED = re.compile(r"\blspci\b.{0,80}\s-s\s*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7])\b", re.IGNORECASE)

Answer = tuple[tuple[PcieLink, ...], tuple[int, ...]]


def generation(text: str) -> int | None:
    """5 from "32GT/s", "32.0 GT/s PCIe"; None for "Unknown" and what no generation has."""
    match = _SPEED.search(text)
    return _GENERATIONS.get(match[1].removesuffix(".0")) if match else None


def lanes(text: str) -> int | None:
    """1 to 32. The kernel prints 0 or 63 where there is no link."""
    digits = text.strip().removeprefix("x")
    count = int(digits) if re.fullmatch(r"[0-9]{1,3}", digits) else 0
    return count if 1 <= count <= _MOST_LANES else None


def from_sysfs(text: str) -> Answer:
    """The GPUs of our loop, each with its link."""
    rows = text.splitlines()
    links: list[PcieLink] = []
    lines: list[int] = []
    for device in sysfs_pci.parse(text):
        if device.is_gpu:
            words = dict(_WORD.findall(rows[device.line - 1][:LINE_CAP]))
            links.append(_link(device.address, words))
            lines.append(device.line)
    return tuple(links), tuple(lines)


def _link(address: str, words: dict[str, str]) -> PcieLink:
    width, width_max = lanes(words.get("width", "")), lanes(words.get("max_width", ""))
    return PcieLink(
        address,
        generation(words.get("speed", "")) if width else None,
        width,
        generation(words.get("max_speed", "")) if width_max else None,
        width_max,
    )


def from_lspci(text: str) -> Answer:
    """NVIDIA GPUs with their links; links without an address where the text names no device."""
    devices = lspci.parse(text)
    links: list[PcieLink] = []
    lines: list[int] = []
    for device in lspci.gpus(devices):
        for link, link_lines in _links(device.details, device.address):
            links.append(link)
            lines += link_lines
    if not devices:
        rows = [(n, line[:LINE_CAP]) for n, line in enumerate(text.splitlines(), 1)]
        for link, link_lines in _links(rows, _typed_address(rows)):
            links.append(link)
            lines += link_lines
    return tuple(links), tuple(lines)


def _typed_address(rows: list[tuple[int, str]]) -> str | None:
    """`lspci -vvv -s 41:00.0 | grep Lnk` names its device only in the command."""
    typed = _TYPED.search(rows[0][1][:400]) if rows else None
    return lspci.full_address(typed[1]) if typed else None


def _links(details: Iterable[tuple[int, str]], address: str | None) -> list[tuple[PcieLink, list[int]]]:
    """Each LnkCap with the LnkSta below it; a LnkSta alone counts, a LnkCap alone does not."""
    links: list[tuple[PcieLink, list[int]]] = []
    most: tuple[int | None, int | None] = (None, None)
    above: list[int] = []
    for number, line in details:
        match = _LINK.match(line)
        if match is None:
            continue
        width = _WIDTH.search(match["rest"])
        now = (generation(match["rest"]), lanes(width[1]) if width else None)
        if match["which"] == "Cap":
            most, above = now, [number]
        else:
            links.append((PcieLink(address, *now, *most), [*above, number]))
            most, above = (None, None), []
    return links
