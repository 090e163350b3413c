"""A kernel patch that pretends isolation that the hardware does not have.

It splits IOMMU groups and never merges them.

Source: Proxmox kernel 7.0, patch 0004.
"""

from agents.facts.host import HOST_CMDLINE, IOMMU_GROUPS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "Proxmox kernel 7.0, ACS override patch"


def judge(case: Case) -> Advice:
    facts = case.facts
    text = (
        "it only splits IOMMU groups, by assumption; groups need not be merged for P2P inside one VM, so it "
        "has no effect on P2P and lowers isolation"
    )
    claims = [because(text, SOURCE, facts.refs(IOMMU_GROUPS))]
    if facts.value(HOST_CMDLINE, where=lambda line: "pcie_acs_override" in line):
        text = "it is on the host’s command line: remove it if the groups allow"
        claims.append(seen(text, facts.refs(HOST_CMDLINE), SOURCE))
    return advise(OptionStatus.UNSAFE, *claims)


option = Option(
    __name__,
    title="pcie_acs_override on the host",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="devices are taken for isolated that are not: a guest’s device may write into another’s",
    rollback="remove it from the command line and reboot; mappings need the old group numbers",
    verified_by="host.iommu_groups",
    changes=("host.kernel_cmdline", "host.iommu_groups"),
    judge=judge,
)
