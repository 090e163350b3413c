"""Samples of the GPUs at work: power, clocks, utilisation, PCIe traffic.

https://docs.nvidia.com/deploy/nvidia-smi/ (dmon), three samples; pasted `dcgmi dmon` answers too. It does not show
whether the engine was serving. `sm` is the time in which any kernel ran, not the busy part of the chip.
"""

from agents.facts.bench import TELEMETRY
from agents.parsing import gpu_monitor
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer


def parse(output: Output) -> Readings:
    gpus, lines = gpu_monitor.parse(output.stdout)
    if gpus:
        cited_lines = (*lines[:2], *lines[-1:]) if len(lines) > 64 else lines
        return (TELEMETRY.known(gpus, lines=cited_lines, missing=cut(output)),)
    return (no_answer(TELEMETRY, output, "sample of a GPU"),)


probe = Probe(
    __name__,
    title="GPUs at work",
    commands=(Command("nvidia-smi dmon -s pumt -c 3", needs=("nvidia-smi",)),),
    supplies=(TELEMETRY,),
    parse=parse,
    signature=Signature(
        typed=r"\bdcgmi\s+dmon\b|nvidia-smi\s+dmon\b",
        starts=(r"^#(?:Date\s+Time\s+)? ?gpu[, ]+(?!.*\bpid\b)\w+", r"^#\s*Entity\s+[A-Z0-9]{4,5}\b"),
        belongs=r"^#|^\s*\d+[, ]+[\d-]|^\s*\d{8}\s+\d\d:|^GPU \d+\s|^I[Dd]\s*$",
    ),
    timeout_s=20,
    slow=True,
)
