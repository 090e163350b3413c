"""Everything nvidia-smi knows about each GPU, and the state of the NVSwitch fabric.

https://docs.nvidia.com/deploy/nvidia-smi/ (-q). Only this output has the virtualisation mode (Pass-Through or VGPU)
and the Fabric section, whose CliqueId is unrelated to the GPUDirect clique.
"""

from agents.facts import Reading
from agents.facts.gpu import FABRIC, GPU_COUNT_SMI, GPUS, Fabric
from agents.facts.platform import CUDA_VERSION, DRIVER_VERSION
from agents.parsing import smi_query
from agents.parsing.smi_query import SmiQuery
from agents.parsing.smi_value import no_devices
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer

_FACTS = (GPUS, GPU_COUNT_SMI, FABRIC, DRIVER_VERSION, CUDA_VERSION)


def parse(output: Output) -> Readings:
    query = smi_query.parse(output.stdout)
    if query is None or not (query.gpus or no_devices(output.stdout)):
        return tuple(no_answer(fact, output, "GPU's block") for fact in _FACTS)
    gaps = (*smi_query.gaps(query), *cut(output))
    gpus = GPUS.known(query.gpus, lines=query.lines, missing=gaps)
    versions = (
        fact.known(at[0], lines=(at[1],)) if at else fact.not_run("this part holds no version")
        for fact, at in ((DRIVER_VERSION, query.driver), (CUDA_VERSION, query.cuda))
    )
    if not query.gpus:
        gpus = GPUS.absent("the driver lists no GPU")
    return (gpus, _count(query), read_fabric(query), *versions)


def _count(query: SmiQuery) -> Reading[int]:
    """The number of blocks; fewer than the head announces means that the text is cut or a GPU is lost."""
    reachable = sum(not gpu.lost for gpu in query.gpus)
    if query.attached is None and query.gpus:
        missing = ("the head, so there may be more GPUs",)
        return GPU_COUNT_SMI.known(reachable, lines=query.lines, missing=missing)
    short = query.attached is not None and query.attached[0] > len(query.gpus)
    gaps = tuple(gap for gap in smi_query.gaps(query) if gap.endswith("GPUs")) if short else ()
    return GPU_COUNT_SMI.known(reachable, lines=query.lines, missing=gaps)


def read_fabric(query: SmiQuery) -> Reading[Fabric]:
    """N/A in the section is an answer: this GPU is on no NVSwitch fabric."""
    fabric = smi_query.fabric(query)
    if fabric:
        unseen = smi_query.blocks_without_fabric(query)
        gaps = (f"the Fabric section of {unseen} GPUs",) if unseen else ()
        return FABRIC.known(fabric[0], lines=fabric[1], missing=gaps)
    if smi_query.has_fabric_section(query):
        return FABRIC.absent("no NVSwitch fabric: the driver says N/A", lines=query.lines)
    return FABRIC.not_run("this text has no Fabric section; drivers before 525 print none")


probe = Probe(
    __name__,
    title="GPUs in detail",
    commands=(Command("nvidia-smi -q", needs=("nvidia-smi",)),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+(?:-q\b|--query\b(?!-))(?!.*\|)",
        starts=(r"^[\s>]*=+NVSMI LOG=+", r"^[\s>]*GPU ?[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*$"),
        belongs=r"^[\s>]*(?:[A-Z][\w ./()-]*(?: : .*|\s+:.*)?|=+NVSMI LOG=+)?\s*$|^[\s>]*GPU ?[0-9A-F]{8}:",
    ),
    timeout_s=30,
    cap_kib=1024,
    slow=True,
)
