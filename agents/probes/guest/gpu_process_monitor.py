"""Which processes use the GPUs, as `nvidia-smi pmon` samples them.

https://docs.nvidia.com/deploy/nvidia-smi/ (pmon). Inside a container nvidia-smi hides processes of others, so an
empty list does not prove an idle GPU.
"""

from agents.facts.gpu import GPU_PROCESSES
from agents.parsing import gpu_monitor
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer


def parse(output: Output) -> Readings:
    answer = gpu_monitor.processes(output.stdout)
    if answer:
        processes, lines = answer
        return (GPU_PROCESSES.known(processes, lines=lines, missing=cut(output)),)
    return (no_answer(GPU_PROCESSES, output, "list of processes"),)


probe = Probe(
    __name__,
    title="Processes on the GPUs, sampled",
    commands=(Command("nvidia-smi pmon -s um -c 1", needs=("nvidia-smi",)),),
    supplies=(GPU_PROCESSES,),
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+pmon\b", starts=(r"^#\s*gpu\s+pid\s+type\b",), belongs=r"^#|^\s*\d+\s+(?:\d+|-)\s"
    ),
    timeout_s=20,
    slow=True,
    on_demand=True,
)
