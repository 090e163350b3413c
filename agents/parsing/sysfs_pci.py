"""Lines of our own loop over /sys/bus/pci/devices: an address, then `key=value` words.

Example: `0000:01:00.0 vendor=0x10de device=0x2bb5 class=0x030200 revision=0xa1 driver=nvidia numa=-1
path=/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0`.
Attributes: Linux, Documentation/ABI/testing/sysfs-bus-pci.
"""

import re
from dataclasses import dataclass

from agents.parsing import lspci

_ADDRESS = re.compile(r"(?<![0-9a-f:])[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7](?![0-9a-f])")
_WORD = re.compile(r"\b([a-z]{4,8})=(\S*)")
_ROOT = re.compile(r"^(?:/sys/devices)?/pci([0-9a-f]{4,8}:[0-9a-f]{2})$")


@dataclass(frozen=True, slots=True)
class Device:
    """One PCI function. vendor, device: four hex digits. class_code: the first four of six.

    numa_node None: not printed; -1: no node. path: the sysfs path, with every bridge from the root complex down.
    """

    address: str
    line: int
    vendor: str = ""
    device: str = ""
    class_code: str = ""
    revision: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    path: str = ""

    @property
    def is_gpu(self) -> bool:
        return self.vendor == "10de" and self.class_code in ("0300", "0302")

    @property
    def listed(self) -> lspci.Device:
        """The device as lspci lists it, without a name."""
        ids = f"{self.vendor}:{self.device}"
        return lspci.Device(self.address, self.line, None, self.class_code, ids, "", self.revision, self.driver)

    @property
    def root(self) -> str:
        """ "0000:00"; empty when the path does not show it."""
        roots = (_ROOT.match("/" + part) for part in self.path.split("/"))
        return next((match[1] for match in roots if match), "")

    @property
    def bridges(self) -> tuple[str, ...]:
        """Addresses above this device, from the root complex down."""
        above = (part for part in self.path.split("/") if _ADDRESS.fullmatch(part))
        return tuple(part for part in above if part != self.address)


def parse(text: str) -> tuple[Device, ...]:
    """Every line that names an address, a vendor and a class."""
    devices = (_device(raw[: lspci.LINE_CAP], i) for i, raw in enumerate(text.splitlines(), 1))
    return tuple(device for device in devices if device is not None)


def _device(line: str, number: int) -> Device | None:
    address = _ADDRESS.search(line)
    words = dict(_WORD.findall(line))
    vendor, class_code = _hex(words.get("vendor")), _hex(words.get("class"))
    if address is None or not vendor or not class_code:
        return None
    numa = words.get("numa", "")
    return Device(
        address[0],
        number,
        vendor,
        _hex(words.get("device")),
        class_code[:4],
        _hex(words.get("revision")) or None,
        words.get("driver") or None,
        int(numa) if re.fullmatch(r"-?[0-9]{1,4}", numa) else None,
        words.get("path") or _link_target(line),
    )


def _hex(word: str | None) -> str:
    return word[2:].lower() if word and re.fullmatch(r"0x[0-9a-fA-F]{2,6}", word) else ""


def _link_target(line: str) -> str:
    """The target in `/sys/bus/pci/devices/… -> /sys/devices/…`, as `ls -l` and loops print it."""
    return next((word for word in line.split() if word.startswith("/sys/devices/pci")), "")
