"""The driver and the CUDA version it offers, with the table plain `nvidia-smi` prints.

https://docs.nvidia.com/deploy/nvidia-smi/ ; where the tool is missing or fails, /proc/driver/nvidia/version shows the
loaded module's version, and modinfo(8) that of a module that is not loaded. The CUDA version is the newest that the
driver can run, not the toolkit's.
"""

import re
from collections.abc import Sequence
from typing import Any

from agents.facts import Reading
from agents.facts.gpu import GPU_COUNT_SMI, GPU_PROCESSES, GPUS
from agents.facts.platform import CUDA_VERSION, DRIVER_VERSION
from agents.parsing import smi_table
from agents.parsing.smi_table import SmiTable
from agents.parsing.smi_value import no_devices, unquoted
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer

_MODULE = re.compile(r"NVRM version: .{0,80}?\s(?P<version>\d{3}\.\d{1,3}(?:\.\d{1,3})?)\s")
_MODINFO = re.compile(r"^\s*(?:version:\s+)?(?P<version>\d{3}\.\d{2,3}(?:\.\d{1,3})?)\s*$")
_REPORT = re.compile(r"^\s*(?:CUDA Driver Version|Nvidia driver version)\s*: (?P<version>\d{3}\.[\d.]{2,8})", re.I)
_SH = """nvidia-smi; code=$?
[ $code = 0 ] || cat /proc/driver/nvidia/version 2>/dev/null || modinfo -F version nvidia 2>/dev/null
exit "$code\""""


def parse(output: Output) -> Readings:
    table = smi_table.parse(output.stdout)
    module = _from_module(output.lines)
    driver = (table.driver if table else None) or module
    cuda = table.cuda if table else None
    return (
        _version(driver, table, output),
        CUDA_VERSION.known(cuda[0], lines=(cuda[1],))
        if cuda
        else CUDA_VERSION.not_run("only nvidia-smi's head names it"),
        *_from_table(table, output),
    )


def _version(driver: tuple[str, int] | None, table: SmiTable | None, output: Output) -> Reading[str]:
    if driver:
        return DRIVER_VERSION.known(driver[0], lines=(driver[1],))
    if table:
        return DRIVER_VERSION.not_run("this part of the table has no head")
    return no_answer(DRIVER_VERSION, output, "driver version")


def _from_module(lines: Sequence[str]) -> tuple[str, int] | None:
    for number, raw in enumerate(lines, 1):
        line = unquoted(raw)[:400]
        for pattern in (_MODULE, _MODINFO, _REPORT):
            if match := pattern.search(f"{line} "):
                return match["version"], number
    return None


def _from_table(table: SmiTable | None, output: Output) -> tuple[Reading[Any], ...]:
    facts = (GPUS, GPU_COUNT_SMI, GPU_PROCESSES)
    if table is None:
        if no_devices(output.stdout + output.stderr):
            absent = GPUS.absent("the driver lists no GPU")
            return (absent, GPU_COUNT_SMI.known(0), GPU_PROCESSES.not_run("no table was printed"))
        return tuple(fact.not_run("no table was printed") for fact in facts)
    gpus: Reading[Any] = GPUS.not_run("this part of the table lists no GPU")
    count: Reading[Any] = GPU_COUNT_SMI.not_run("this part of the table lists no GPU")
    if table.gpus:
        gaps = (*table.missing, *cut(output))
        gpus = GPUS.known(table.gpus, lines=table.gpu_lines, missing=gaps)
        head = () if table.driver else ("the head, so there may be more GPUs",)
        reachable = sum(not gpu.lost for gpu in table.gpus)
        count = GPU_COUNT_SMI.known(reachable, lines=table.gpu_lines, missing=(*head, *cut(output)))
    if table.processes is None:
        return (gpus, count, GPU_PROCESSES.not_run("no list of processes in this part"))
    return (gpus, count, GPU_PROCESSES.known(table.processes, lines=table.process_lines))


probe = Probe(
    __name__,
    title="Driver and CUDA version",
    commands=(
        Command(_SH, needs=("nvidia-smi",)),
        Command("cat /proc/driver/nvidia/version || exit 127"),
        Command("modinfo -F version nvidia", needs=("modinfo",)),
    ),
    supplies=(DRIVER_VERSION, CUDA_VERSION, GPUS, GPU_COUNT_SMI, GPU_PROCESSES),
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s*(?:$|[|;>])|cat\s+/proc/driver/nvidia/version|modinfo\s+(?:-F\s*version\s+)?nvidia\b",
        starts=(
            r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}\s*$",
            r"^[\s>]*\|\s*NVIDIA-SMI\s+\d",
            r"^[\s>]*NVIDIA-SMI has failed|^[\s>]*Failed to initialize NVML",
            r"^[\s>]*NVRM version: ",
            r"^[\s>]*\|\s+\d+\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?\d+\s+(?:C|G|C\+G)\s+\S.*MiB\s*\|",
            r"^[\s>]*\|\s+(?:GPU\s+GI\s+CI\s|Processes:\s)",
            r"^\s*(?:CUDA Driver Version|Nvidia driver version)\s*: \d{3}\.",
            r"^version:\s+\d{3}\.\d{2,3}(?:\.\d+)?\s*$",
        ),
        belongs=r"^[\s>]*(?:[|+].*[|+]|.*Usage\s+\||GCC version: .*|)\s*$",
    ),
    timeout_s=20,
    slow=True,
)
