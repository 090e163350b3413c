"""The size of /dev/shm, through which NCCL copies data that GPUs cannot exchange directly.

df(1). A container's default is 64 MiB (Docker, --shm-size), too small for many NCCL ranks.
"""

import re

from agents.facts.platform import SHM, SharedMemory
from agents.probe import Command, Output, Probe, Readings, Signature

_ROW = re.compile(r"^\S+\s+(\d{1,15}(?:[.,]\d)?[KMGTP]?)i?\s+(\d{1,15}(?:[.,]\d)?[KMGTP]?)i?\s+\S+\s+\S+\s+(/\S*)\s*$")
_MOUNT = "/dev/shm"  # noqa: S108 - looked at, never written
_BLOCK = re.compile(r"\b(1024|1K|1M|1G)[- ]?[Bb]l")
_BLOCK_KIB = {"1024": 1.0, "1K": 1.0, "1M": 1024.0, "1G": 1024.0**2}
_SUFFIX_KIB = {"K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}


def parse(output: Output) -> Readings:
    block_kib: float | None = None
    for number, raw in enumerate(output.lines, 1):
        line = raw[:500]
        header, row = _BLOCK.search(line), _ROW.match(line)
        if row and row[3] == _MOUNT:
            size, used = (_mib(cell, block_kib) for cell in (row[1], row[2]))
            if size is None:
                return (SHM.unreadable("sizes without a unit or a header", lines=(number,)),)
            return (SHM.known(SharedMemory(size, used), lines=(number,)),)
        if row and output.alternative >= 0:
            why = f"{_MOUNT} is no file system of its own, it lies on {row[3]}"
            return (SHM.absent(why, lines=(number,)),)
        if header:
            block_kib = _BLOCK_KIB[header[1]]
    if output.tool_missing:
        return (SHM.unsupported("df is not installed"),)
    if "No such file" in output.stderr[:2000] + output.stdout[:2000]:
        return (SHM.absent("there is no /dev/shm"),)
    return (SHM.unreadable("no line for /dev/shm"),)


def _mib(cell: str, block_kib: float | None) -> int | None:
    kib = _SUFFIX_KIB.get(cell[-1]) or (0.0 if cell == "0" else block_kib)
    return None if kib is None else int(float(cell.rstrip("KMGTP").replace(",", ".")) * kib / 1024)


probe = Probe(
    __name__,
    title="Shared memory",
    commands=(Command("df -Pk /dev/shm"),),
    supplies=(SHM,),
    parse=parse,
    signature=Signature(
        typed=r"\bdf\b.*(?:/dev/shm|-\w*h)",
        starts=(r"^\S+\s+\S+\s+\S+\s+\S+\s+\d+%\s+/dev/shm\s*$",),
        belongs=r"^\S+\s+[\d.,]+[KMGTP]?\s+[\d.,]+[KMGTP]?\s+\S+\s+\d+%\s+/",
        any_machine=True,
    ),
)
