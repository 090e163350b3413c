"""/proc/cpuinfo and /proc/meminfo: `key : value` lines (Linux, proc(5))."""

import re
from dataclasses import dataclass

from agents.parsing.lspci import LINE_CAP

_PHYSICAL = re.compile(r"^(\d{2})\s*bits?\b")


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """The first processor block. flags None: the architecture prints none, or the text has none."""

    model: str | None = None
    model_line: int = 0
    phys_bits: int | None = None
    bits_line: int = 0
    hypervisor_flag: bool | None = None
    flags_line: int = 0


def parse(text: str) -> CpuInfo:
    """Reads up to the end of the first block, however many processors follow."""
    model, bits, flag = None, None, None
    where = {"model": 0, "bits": 0, "flags": 0}
    for number, raw in enumerate(text.splitlines(), 1):
        if model and not raw.strip():
            break
        key, _, value = raw[: LINE_CAP * 4].partition(":")
        key, value = key.strip(), value.strip()
        if key == "model name" and model is None and value:
            model, where["model"] = value, number
        elif key == "address sizes" and bits is None:
            match = _PHYSICAL.match(value)
            bits, where["bits"] = (int(match[1]), number) if match else (None, 0)
        elif key == "flags" and flag is None:
            flag, where["flags"] = "hypervisor" in value.split(), number
    return CpuInfo(model, where["model"], bits, where["bits"], flag, where["flags"])


_TOTAL = re.compile(r"^\s*(?:Node \d+ )?MemTotal:\s+(\d{1,15}) kB")


def mem_total_mib(text: str) -> tuple[int, int] | None:
    """MiB and the 1-based line of MemTotal; None when there is none."""
    for number, raw in enumerate(text.splitlines(), 1):
        match = _TOTAL.match(raw[:LINE_CAP])
        if match:
            return int(match[1]) // 1024, number
    return None
