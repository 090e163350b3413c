"""Lets VFIO run without interrupt remapping.

A guest could then inject interrupts into the host.

Source: Linux drivers/vfio/vfio_iommu_type1.c, allow_unsafe_interrupts.
"""

from agents.facts.host import HOST_CMDLINE, HOST_IOMMU
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen


def judge(case: Case) -> Advice:
    facts = case.facts
    text = "a security hole on platforms without interrupt remapping, and nothing to do with P2P"
    claims = [because(text, "Linux drivers/vfio/vfio_iommu_type1.c", facts.refs(HOST_IOMMU))]
    if facts.value(HOST_CMDLINE, where=lambda line: "allow_unsafe_interrupts" in line):
        claims.append(seen("it is set on this host: remove it", facts.refs(HOST_CMDLINE), ""))
    return advise(OptionStatus.UNSAFE, *claims)


option = Option(
    __name__,
    title="vfio_iommu_type1.allow_unsafe_interrupts=1",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="a guest may inject interrupts into the host",
    rollback="remove the module option and reboot",
    verified_by="`dmesg` on the host says that interrupt remapping is enabled",
    changes=("host.kernel_cmdline", "host.iommu", "host.module_config"),
    judge=judge,
)
