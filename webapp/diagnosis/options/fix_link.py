"""A slot, riser or setting that leaves a GPU with fewer or slower lanes than it has.

Source: PCI Express base specification, link status.
"""

from agents.facts.gpu import GPUS
from agents.facts.host import GPU_PATHS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "PCI Express base specification, link status"


def judge(case: Case) -> Advice:
    if case.supported("pcie_link_degraded"):
        text = "a GPU’s link is below what it can do: this comes before all else"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, case.facts.refs(GPUS, GPU_PATHS)))
    if case.refuted("pcie_link_degraded"):
        refs = case.facts.refs(GPUS, GPU_PATHS)
        return advise(OptionStatus.DONE, seen("the links run at what they can", refs, SOURCE))
    text = "whether a link is degraded shows on the host, under load; idle links slow down to save power"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE))


option = Option(
    __name__,
    title="Repair a degraded PCIe link",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    rollback="nothing to undo",
    verified_by="`lspci -vv` on the host under load shows LnkSta as LnkCap",
    changes=("guest.pcie_links", "host.pcie_links"),
    judge=judge,
)
