"""A module for network cards that write into GPU memory; GPUs of one machine do not use it.

Source: NVIDIA open kernel modules 595.45, nvidia-peermem.
"""

from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because


def judge(case: Case) -> Advice:
    text = (
        "it lets an RDMA network card reach GPU memory; between GPUs of one machine it does nothing, and "
        "there is no P2P in software beside the shared memory that NCCL uses already"
    )
    return advise(OptionStatus.NO_EFFECT, because(text, "NVIDIA kernel-open/nvidia-peermem"))


option = Option(
    __name__,
    title="Load nvidia-peermem",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.NONE,
    rollback="`modprobe -r nvidia-peermem`",
    verified_by="nothing to verify: it changes nothing between GPUs",
    judge=judge,
)
