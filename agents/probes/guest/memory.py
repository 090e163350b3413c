"""The memory of this machine: MemTotal of /proc/meminfo (proc(5)), or `free` with units."""

import re

from agents.facts.platform import MEMORY_MIB
from agents.parsing.cpuinfo import mem_total_mib
from agents.probe import Command, Output, Probe, Readings, Signature

# `free -h` (procps): binary units, one digit after the point.
_FREE = re.compile(r"^\s*(?:Mem|Speicher|Mem\.)\s*:\s+(\d{1,7}(?:[.,]\d)?)\s?(Mi|Gi|Ti)B?\b")
_PLAIN = re.compile(r"^\s*Mem\s*:\s+\d+\s+\d+")
_MIB = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}


def parse(output: Output) -> Readings:
    total = mem_total_mib(output.stdout)
    if total is not None:
        return (MEMORY_MIB.known(total[0], lines=(total[1],)),)
    for number, raw in enumerate(output.lines, 1):
        match = _FREE.match(raw[:500])
        if match:
            mib = round(float(match[1].replace(",", ".")) * _MIB[match[2]])
            return (MEMORY_MIB.known(mib, lines=(number,), missing=("exact size: rounded",)),)
        if _PLAIN.match(raw[:500]):
            return (MEMORY_MIB.unreadable("free prints no unit: -h or /proc/meminfo tells"),)
    if output.tool_missing:
        return (MEMORY_MIB.unsupported("no /proc/meminfo"),)
    return (MEMORY_MIB.unreadable("no MemTotal in the output"),)


probe = Probe(
    __name__,
    title="Memory",
    commands=(Command("grep -m1 MemTotal /proc/meminfo"),),
    supplies=(MEMORY_MIB,),
    parse=parse,
    signature=Signature(
        typed=r"/proc/meminfo|\bfree\b",
        starts=(r"^MemTotal:\s+\d+ kB", r"^\s+total\s+used\s+free\s+shared"),
        belongs=r"^\w[\w()]*:\s+\d|^(?:Mem|Swap):",
        any_machine=True,
    ),
)
