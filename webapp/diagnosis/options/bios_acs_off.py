"""ACS switched off in the firmware: IOMMU groups get other numbers.

A mapping that names a group is checked at every start of a VM.

Source: Proxmox pve-guest-common, Mapping/PCI.pm.
"""

from agents.facts.host import PCI_MAPPINGS
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because


def judge(case: Case) -> Advice:
    facts = case.facts
    text = "no effect on P2P: ACS does not enter the driver’s decision"
    claims = [because(text, "NVIDIA open kernel modules 595.45, p2p_caps.c", facts.refs(P2P_READ))]
    mappings = facts.value(PCI_MAPPINGS) or ()
    named = sorted({m.mapping for m in mappings if m.iommu_group is not None})
    broken = (
        f"the mapping {', '.join(named)}: it names groups, and the VM will not start"
        if named
        else "mappings that name a group"
    )
    source = "Proxmox pve-guest-common, Mapping/PCI.pm"
    claims.append(because(f"it renumbers IOMMU groups, which breaks {broken}", source, facts.refs(PCI_MAPPINGS)))
    return advise(OptionStatus.NO_EFFECT, *claims)


option = Option(
    __name__,
    title="ACS off in the BIOS",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="devices that share a group are no longer isolated from each other",
    rollback="switch it on again in the BIOS; mappings need the old group numbers",
    verified_by="host.iommu_groups",
    changes=("host.iommu_groups", "host.acs", "host.pci_mappings"),
    judge=judge,
)
