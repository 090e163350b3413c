"""Which processes hold GPU memory.

https://docs.nvidia.com/deploy/nvidia-smi/ (--help-query-compute-apps). Inside a container the list
may be empty while a GPU is in use.
"""

import re

from agents.facts.gpu import GPU_PROCESSES, GpuProcess
from agents.parsing import smi_table
from agents.parsing.nonblank_lines import nonblank_lines
from agents.parsing.smi_value import unquoted, whole
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer

_UNIT = re.compile(r"\s*\[[^\]]*\]?$")
_HEADER = re.compile(r"^[\s>]*[a-z_]+(?: \[\w+\])?, .*\bpid\b|^[\s>]*pid, ")


def parse(output: Output) -> Readings:
    rows, lines, header = _rows(output.stdout)
    if not header:
        table = smi_table.parse(output.stdout)
        if table and table.processes is not None:
            return (GPU_PROCESSES.known(table.processes, lines=table.process_lines),)
        return (no_answer(GPU_PROCESSES, output, "list of processes"),)
    return (GPU_PROCESSES.known(tuple(rows), lines=lines or (header,), missing=cut(output)),)


def _rows(text: str) -> tuple[list[GpuProcess], tuple[int, ...], int]:
    """The processes, their lines, and the header's line (0: none). A process name may hold commas."""
    names: list[str] = []
    processes: list[GpuProcess] = []
    lines: list[int] = []
    header = 0
    for number, raw in nonblank_lines(text):
        line = unquoted(raw)
        if _HEADER.match(line):
            names, header = [_UNIT.sub("", cell.strip()) for cell in line.split(",")], number
        elif names and (row := _process(names, line)):
            processes.append(row)
            lines.append(number)
    return processes, tuple(lines), header


def _process(names: list[str], line: str) -> GpuProcess | None:
    cells = [cell.strip() for cell in line.split(",")]
    extra = len(cells) - len(names)
    name_at = names.index("process_name") if "process_name" in names else -1
    if extra > 0 and name_at >= 0:
        joined = ", ".join(cells[name_at : name_at + extra + 1])
        cells = [*cells[:name_at], joined, *cells[name_at + extra + 1 :]]
    row = dict(zip(names, cells, strict=False))
    pid = row.get("pid", "")
    if len(cells) != len(names) or not pid.isdecimal() or len(pid) > 10:
        return None
    memory = whole(row.get("used_gpu_memory", row.get("used_memory", "")))
    index = whole(row.get("gpu_index", ""))
    return GpuProcess(index, int(pid), row.get("process_name") or "", memory)


probe = Probe(
    __name__,
    title="Processes on the GPUs",
    commands=(
        Command(
            "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv", needs=("nvidia-smi",)
        ),
    ),
    supplies=(GPU_PROCESSES,),
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+.*--query-compute-apps\b",
        starts=(r"^[\s>]*(?:(?:gpu_\w+|timestamp), )*pid, ",),
        belongs=r"^[\s>]*(?:GPU-[0-9a-f-]+, |\d+, ).*\S",
    ),
    timeout_s=20,
    slow=True,
)
