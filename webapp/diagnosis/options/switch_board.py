"""A board on which the GPUs hang on PCIe switches, so that peer traffic turns there.

Source: rtx6kpro measurements of RTX PRO 6000, 2026.
"""

from agents.facts.host import GPU_PATHS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because
from webapp.diagnosis.reference.curves import P2P_ALL_REDUCE_8_US


def judge(case: Case) -> Advice:
    text = (
        "published 8-GPU all-reduces with P2P take 24 to 27 µs on switch boards and up to 57 µs without; "
        "a VM needs the clique on such a board too"
    )
    claim = because(text, "rtx6kpro measurements, 2026", case.facts.refs(GPU_PATHS), P2P_ALL_REDUCE_8_US)
    return advise(OptionStatus.POSSIBLE, claim)


option = Option(
    __name__,
    title="A board with PCIe switches, or GPUs with NVLink",
    phase="P5",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    rollback="nothing to undo: hardware is bought",
    verified_by="the whole ladder, then an A/B of the workload",
    changes=(
        "host.platform",
        "host.pci_tree",
        "host.gpu_paths",
        "host.iommu_groups",
        "host.acs",
        "guest.p2p_read",
        "guest.p2p_write",
        "guest.topology",
        "guest.worst_link",
    ),
    judge=judge,
)
