"""The GPUs by name and UUID, with their MIG instances.

https://docs.nvidia.com/deploy/nvidia-smi/ (-L). A MIG line below a GPU means that MIG is on, and a GPU in MIG
mode has no peer access.
"""

from agents.facts.gpu import GPU_COUNT_SMI, GPUS
from agents.parsing import smi_list
from agents.parsing.smi_value import no_devices
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer


def parse(output: Output) -> Readings:
    table = smi_list.parse(output.stdout)
    if table is None:
        if no_devices(output.stdout + output.stderr):
            return (GPUS.absent("the driver lists no GPU"), GPU_COUNT_SMI.known(0))
        return tuple(no_answer(fact, output, "GPU") for fact in (GPUS, GPU_COUNT_SMI))
    reachable = sum(not gpu.lost for gpu in table.gpus)
    return (
        GPUS.known(table.gpus, lines=table.lines, missing=(*table.missing, *cut(output))),
        GPU_COUNT_SMI.known(reachable, lines=table.lines, missing=cut(output)),
    )


probe = Probe(
    __name__,
    title="GPUs by name and UUID",
    commands=(Command("nvidia-smi -L", needs=("nvidia-smi",)),),
    supplies=(GPUS, GPU_COUNT_SMI),
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+(?:-L\b|--list-gpus)",
        starts=(r"^[\s>]*GPU \d+(?:,\d+)*: [^(:=]+(?:\(UUID: [^()]{1,60}\)?)?\s*$",),
        belongs=r"^[\s>]*(?:GPU \d+(?:,\d+)*: |MIG \S+\s+Device|Unable to determine)",
    ),
    timeout_s=20,
    slow=True,
    on_demand=True,
)
