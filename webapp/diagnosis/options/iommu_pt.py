"""Untranslated DMA for devices that the host's own drivers use.

A device given to a VM sits in a domain of its own, with pt as without.

Source: Linux drivers/iommu/iommu.c, default domain; Linux drivers/vfio/vfio_iommu_type1.c.
"""

from agents.facts.host import HOST_CMDLINE
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because
from webapp.diagnosis.situation.platform import Platform


def judge(case: Case) -> Advice:
    if case.situation.outside_kvm is Platform.BARE_METAL:
        text = "without a VM the GPUs are the host’s own: P2P often hangs in translated domains"
        source = "NVIDIA GPUDirect documentation; Linux iommu=pt"
        return advise(OptionStatus.POSSIBLE, because(text, source, case.situation.platform_refs))
    text = (
        "no effect on devices given to a VM by VFIO: their DMA is translated with it as without it. It is "
        "for the host’s own devices"
    )
    claim = because(text, "Linux kernel parameters, iommu=pt; VFIO", case.facts.refs(HOST_CMDLINE))
    return advise(OptionStatus.NO_EFFECT, claim)


option = Option(
    __name__,
    title="iommu=pt on the host",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="the host’s own devices may reach all of its memory",
    rollback="remove it from the command line and reboot",
    verified_by="host.iommu: default domain type",
    changes=("host.kernel_cmdline", "host.iommu"),
    judge=judge,
    kernel_option="iommu=pt",
    by_hand="On the host, as root: add `iommu=pt` to its kernel command line, and reboot it.",
)
