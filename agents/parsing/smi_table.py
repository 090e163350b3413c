"""The boxed table that plain `nvidia-smi` prints, in whole or in parts.

The head's words changed with the driver ("Driver Version", "KMD Version"; "CUDA Version", "CUDA UMD Version"), the
memory column's width and the MIG line too, so cells are found by their form.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.facts.gpu import Gpu, GpuProcess
from agents.parsing import smi_lost
from agents.parsing.lspci import full_address
from agents.parsing.smi_value import cell_text, switch, unquoted, whole

_HEAD = re.compile(r"NVIDIA-SMI\s+(?P<tool>\d[\d.]+)")
_DRIVER = re.compile(r"(?:Driver|KMD|Kernel Driver) Version: ?\s{0,4}(?P<version>\d{3}\.[\d.]+\d)")
_CUDA = re.compile(r"CUDA (?:UMD |Driver )?Version: ?\s{0,4}(?P<version>\d{1,2}\.\d{1,2})")
_FIRST = re.compile(
    r"^\s*\|\s*(?P<index>\d{1,3})\s+(?P<name>\S.*?)\s*\|\s*"
    r"(?P<address>[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7])\s+\S+\s*\|",
    re.IGNORECASE,
)
_PERSISTENCE = re.compile(r"\s+(On|Off|N/A|ERR!)$")
_POWER = re.compile(r"(?P<draw>\d{1,5}|N/A|ERR!|Unkno\S*)W? ?/ {0,6}(?P<limit>\d{1,5}|N/A|ERR!)W?")
_MEMORY = re.compile(r"(?P<used>\d{1,8})MiB ?/ {0,8}(?P<total>\d{1,8})MiB")
_TEMPERATURE = re.compile(r"\b(\d{1,3})C\b")
_UTILISATION = re.compile(r"(?<![\d.])(\d{1,3})%\s+\S")
_MIG = re.compile(r"^\s*\|\s*\|\s*\|\s*(?P<mig>Enabled\*?|Disabled\*?|N/A)\s*\|")
_PROCESS = re.compile(
    r"^\s*\|\s*(?P<gpu>\d{1,3})\s+(?:(?:N/A|\d{1,3})\s+(?:N/A|\d{1,3})\s+)?(?P<pid>\d{1,10})\s+"
    r"(?:[MCG+]{1,5})\s+(?P<name>\S.*?)\s+(?:(?P<memory>\d{1,8})MiB|N/A)\s*\|"
)
_NO_PROCESS = "No running processes found"
_WIDTH = 400
_NOT_SHOWN = "UUID and PCIe link: this table has none"


@dataclass(frozen=True, slots=True)
class SmiTable:
    """processes None: the text has no list of them. gpu_lines and process_lines: 1-based."""

    gpus: tuple[Gpu, ...]
    gpu_lines: tuple[int, ...]
    driver: tuple[str, int] | None = None
    cuda: tuple[str, int] | None = None
    processes: tuple[GpuProcess, ...] | None = None
    process_lines: tuple[int, ...] = ()
    missing: tuple[str, ...] = (_NOT_SHOWN,)


def parse(text: str) -> SmiTable | None:
    """None when the text holds no line of such a table."""
    lines = [unquoted(line)[:_WIDTH] for line in text.splitlines()]
    driver, cuda = _head(lines)
    gpus, gpu_lines = _gpus(lines)
    processes, process_lines = _processes(lines)
    handles = smi_lost.find(text)
    listed = smi_lost.with_lost([_with_driver(gpu, driver) for gpu in gpus], handles)
    if not (listed or driver or processes is not None):
        return None
    where = tuple(sorted({*gpu_lines, *(handle.line for handle in handles)}))
    short = [f"the full name of GPU {g.index}" for g in listed if g.name and g.name.endswith("..")]
    return SmiTable(listed, where, driver, cuda, processes, process_lines, (_NOT_SHOWN, *short))


def _with_driver(gpu: Gpu, driver: tuple[str, int] | None) -> Gpu:
    return replace(gpu, driver=driver[0]) if driver else gpu


def _head(lines: Sequence[str]) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
    """Driver and CUDA version with their lines. The head is one line, two where a paste broke it."""
    for at, line in enumerate(lines):
        if _HEAD.search(line) is None:
            continue
        both = f"{line} {lines[at + 1]}" if at + 1 < len(lines) else line
        driver, cuda = _DRIVER.search(both), _CUDA.search(both)
        if driver:
            return (driver["version"], at + 1), (cuda["version"], at + 1) if cuda else None
    return None, None


def _gpus(lines: Sequence[str]) -> tuple[list[Gpu], list[int]]:
    by_index: dict[int, Gpu] = {}
    numbers: list[int] = []
    for at, line in enumerate(lines):
        first = _FIRST.match(line)
        if first is None or int(first["index"]) in by_index:
            continue
        rest = [below for below in lines[at + 1 : at + 4] if _FIRST.match(below) is None]
        gpu = _gpu(first, rest)
        by_index[gpu.index] = gpu
        numbers.extend((at + 1, at + 2) if rest else (at + 1,))
    return list(by_index.values()), numbers


def _gpu(first: re.Match[str], below: Sequence[str]) -> Gpu:
    persistence = _PERSISTENCE.search(first["name"])
    name = _PERSISTENCE.sub("", first["name"]).strip()
    values = below[0] if below else ""
    power, memory = _POWER.search(values), _MEMORY.search(values)
    temperature = _TEMPERATURE.search(values)
    utilisation = _UTILISATION.search(values.rpartition("MiB")[2])
    mig = next((m for line in below[1:2] if (m := _MIG.match(line))), None)
    return Gpu(
        int(first["index"]),
        name=cell_text(name),
        pci_address=full_address(first["address"]),
        vram_mib=int(memory["total"]) if memory else None,
        memory_used_mib=int(memory["used"]) if memory else None,
        power_w=_watts(power["draw"]) if power else None,
        power_limit_w=_watts(power["limit"]) if power else None,
        temperature_celsius=int(temperature[1]) if temperature else None,
        utilisation_percent=int(utilisation[1]) if utilisation else None,
        mig=switch(mig["mig"]) if mig else None,
        persistence=switch(persistence[1]) if persistence else None,
        lost=name == "ERR!" or values.count("ERR!") >= 3,
    )


def _watts(cell: str) -> float | None:
    value = whole(cell)
    return None if value is None else float(value)


def _processes(lines: Sequence[str]) -> tuple[tuple[GpuProcess, ...] | None, tuple[int, ...]]:
    processes: list[GpuProcess] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        if _NO_PROCESS in line:
            return (), (number,)
        row = _PROCESS.match(line)
        if row:
            memory = int(row["memory"]) if row["memory"] else None
            processes.append(GpuProcess(int(row["gpu"]), int(row["pid"]), row["name"], memory))
            numbers.append(number)
    return (tuple(processes), tuple(numbers)) if processes else (None, ())
