"""Another CUDA version for the engine's kernels; it has nothing to do with P2P.

Source: NVIDIA CUDA compatibility guide.
"""

from agents.facts.platform import CUDA_VERSION
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because


def judge(case: Case) -> Advice:
    text = (
        "the effect is not known: newer kernels may be faster on this chip. It is not about P2P: the "
        "driver decides that before CUDA is asked"
    )
    source = "NVIDIA open kernel modules 595.45, p2p_caps.c"
    return advise(OptionStatus.POSSIBLE, because(text, source, case.facts.refs(CUDA_VERSION)))


option = Option(
    __name__,
    title="Build or run the engine with a newer CUDA toolkit",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="keep the old environment beside the new one and start from it",
    verified_by="bench.serving before and after, five runs each",
    changes=("guest.cuda_version", "guest.software", "guest.nccl_version"),
    judge=judge,
)
