"""Tensor parallel over half of the GPUs: fewer ring steps, twice the weights on each.

The engines hold back about a tenth of the memory for context and buffers.

Source: vLLM, --gpu-memory-utilization; SGLang, --mem-fraction-static.
"""

from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL, PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.option import Option, advise, because
from webapp.diagnosis.prediction.memory_fit import fit

SOURCE = "vLLM and SGLang keep about a tenth of the memory free for context and buffers"
NVFP4_BITS = 4.5


def judge(case: Case) -> Advice:
    facts, parallel = case.facts, case.facts.value(PARALLELISM)
    if parallel is None:
        text = "the tensor-parallel size in use was not given, so it is not known whether it can be halved"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    if parallel.tp < 2 or parallel.tp % 2:
        text = "needs a tensor-parallel size that can be halved"
        return advise(OptionStatus.BLOCKED, because(text, SOURCE, facts.refs(PARALLELISM)))
    room = fit(facts, parallel.tp // 2 * parallel.pp)
    claim = because(room.why, SOURCE, facts.refs(MODEL, GPUS))
    if room.fits is False:
        return advise(OptionStatus.BLOCKED, claim, *_by_parameters(facts))
    emulated = "which GPUs are near each other cannot be read in a VM: its PCI tree is emulated"
    return advise(OptionStatus.POSSIBLE, claim, because(emulated, "QEMU PCI Express guidelines"))


def _by_parameters(facts: Facts) -> list[Claim]:
    """A smaller figure in someone's notes is another model, or one quantised further."""
    model = facts.value(MODEL)
    if model is None or model.total_params is None:
        return []
    size = model.total_params * NVFP4_BITS / 8 / 1e9
    text = (
        f"{model.total_params / 1e9:.0f} billion parameters at {NVFP4_BITS} bits, NVFP4 with its scales, "
        f"are {size:.0f} GB; a figure well below that, such as 296 GB, is not this model"
    )
    return [because(text, "NVIDIA NVFP4: 4-bit values, an 8-bit scale for 16", facts.refs(MODEL))]


option = Option(
    __name__,
    title="Tensor parallel on a subset of the GPUs (TP4)",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="start the engine with the old size",
    verified_by="bench.serving at concurrency 1 and at the highest, five runs each",
    changes=("guest.engine", "guest.engine_start", "user.parallelism"),
    judge=judge,
)
