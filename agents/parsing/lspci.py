"""`lspci` in the forms people paste: plain, -n, -nn, -nnk, -D, -v to -vvv, with quotes and lost indents.

Format: pciutils lspci(8). A device begins with its address and class; the lines up to the next address belong to it,
indented or not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

LINE_CAP = 2000

_QUOTE = re.compile(r"^\s{0,8}(?:[>|]\s?)+")
_HEAD = re.compile(
    r"^\s{0,20}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7])\s+"
    r"(?:(?P<class>[0-9a-f]{4}): (?P<ids>[0-9a-f]{4}:[0-9a-f]{4})|(?P<text>\S.*))",
    re.IGNORECASE,
)
_ADDRESS_ENDS = 40
_CLASS = re.compile(r"^(?P<name>[^:\[]{2,60}?)(?: \[(?P<code>[0-9a-f]{4})\])?: (?P<rest>.*)$")
_IDS = re.compile(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_UNNAMED = re.compile(r"\bDevice ([0-9a-f]{4})\b")
_REVISION = re.compile(r"\(rev ([0-9a-f]{2})\)")
_DRIVER = re.compile(r"^\s*Kernel driver in use: (\S+)")
_TAIL = re.compile(r" *(?:\[[0-9a-f]{4}:[0-9a-f]{4}\]|\(rev [0-9a-f]{2}\)|\(prog-if .*)")
_DISPLAY = {"0300": "VGA compatible controller", "0302": "3D controller"}


@dataclass(frozen=True, slots=True)
class Details:
    """The lines below a device's header, as (1-based number, text). All devices share one list: a pair for every line
    of a log of megabytes would cost more than reading it."""

    lines: Sequence[str] = ()
    first: int = 0
    last: int = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return zip(range(self.first + 1, self.last + 1), self.lines[self.first : self.last], strict=True)

    def __len__(self) -> int:
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Device:
    """One PCI function. address: full, lower case ("0000:01:00.0"). name: text after the class.

    vendor_device "10de:2bb5" and class_code "0302": None where the paste has names only. revision "ff": the
    device no longer answers.
    """

    address: str
    line: int
    class_name: str | None = None
    class_code: str | None = None
    vendor_device: str | None = None
    name: str = ""
    revision: str | None = None
    driver: str | None = None
    details: Details = Details()

    @property
    def is_nvidia(self) -> bool:
        if self.vendor_device is not None:
            return self.vendor_device.startswith("10de:")
        return self.name.startswith("NVIDIA")

    @property
    def is_gpu(self) -> bool:
        """Whether this is an NVIDIA function of class VGA (0300) or 3D (0302): no audio function, no NVSwitch."""
        by_code = self.class_code in _DISPLAY
        by_name = self.class_code is None and self.class_name in _DISPLAY.values()
        return self.is_nvidia and (by_code or by_name)

    @property
    def is_virtual(self) -> bool:
        """Whether only a hypervisor makes this device: virtio (1af4), QEMU (1b36, 1234:1111)."""
        if self.vendor_device is not None:
            return self.vendor_device[:4] in ("1af4", "1b36") or self.vendor_device == "1234:1111"
        return self.name.startswith("Red Hat") or "QEMU" in self.name


@lru_cache(maxsize=4096)  # the same few devices stand in many lines
def full_address(text: str) -> str:
    """ "0000:01:00.0" from "01:00.0", "00000000:01:00.0" (nvidia-smi) or "0000:01:00" (Xid lines)."""
    parts = text.lower().split(":")
    domain = f"{int(parts[0], 16):04x}" if len(parts) == 3 else "0000"
    device = parts[-1] if "." in parts[-1] else f"{parts[-1]}.0"
    return f"{domain}:{parts[-2]}:{device}"


def parse(text: str) -> tuple[Device, ...]:
    """Every device in print order; empty when no line opens one."""
    lines = [_unquoted(raw[:LINE_CAP]) for raw in text.splitlines()]
    # Most lines show a capability; only an address has a dot this early.
    heads = (_device(line, n) for n, line in enumerate(lines, 1) if "." in line[:_ADDRESS_ENDS])
    opened = [device for device in heads if device]
    ends = [*(device.line - 1 for device in opened[1:]), len(lines)]
    return tuple(
        _with_details(device, Details(lines, device.line, end)) for device, end in zip(opened, ends, strict=False)
    )


def _unquoted(line: str) -> str:
    return _QUOTE.sub("", line) if ">" in line[:9] or "|" in line[:9] else line


def gpus(devices: Iterable[Device]) -> tuple[Device, ...]:
    return tuple(device for device in devices if device.is_gpu)


def _device(line: str, number: int) -> Device | None:
    head = _HEAD.match(line)
    if head is None:
        return None
    address = full_address(head["address"])
    revision = _REVISION.search(line)
    rev = revision[1] if revision else None
    if head["ids"]:
        code, ids = head["class"].lower(), head["ids"].lower()
        return Device(address, number, _DISPLAY.get(code), code, ids, "", rev)
    parts = _CLASS.match(head["text"])
    if parts is None:
        return None
    id_texts = _IDS.findall(parts["rest"])
    ids_or_none = id_texts[-1] if id_texts else _unnamed_nvidia(parts["rest"])
    name = _TAIL.sub("", parts["rest"]).strip()
    return Device(address, number, parts["name"], parts["code"], ids_or_none, name, rev)


def _unnamed_nvidia(rest: str) -> str | None:
    """ "NVIDIA Corporation Device 2bb5": an old id database still prints the id."""
    unnamed = _UNNAMED.search(rest)
    return f"10de:{unnamed[1]}" if unnamed and rest.startswith("NVIDIA") else None


def _with_details(device: Device, details: Details) -> Device:
    drivers = (match[1] for _, line in details if "driver in use" in line and (match := _DRIVER.match(line)))
    return replace(device, driver=next(drivers, None), details=details)
