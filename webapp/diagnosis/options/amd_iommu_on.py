"""An option that the kernel does not know; the AMD IOMMU is on by default.

The kernel prints `AMD-Vi: Unknown option - 'on'` and goes on.

Source: Linux drivers/iommu/amd/init.c, parse_amd_iommu_options.
"""

from agents.facts.host import HOST_CMDLINE, HOST_IOMMU
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen


def judge(case: Case) -> Advice:
    iommu, refs = case.facts.value(HOST_IOMMU), case.facts.refs(HOST_IOMMU)
    text = "there is no such option: the kernel ignores it, and the AMD IOMMU is on by default"
    claims = [because(text, "Linux drivers/iommu/amd/init.c", case.facts.refs(HOST_CMDLINE))]
    if iommu and iommu.enabled:
        claims.append(seen("the IOMMU is on already", refs, ""))
    return advise(OptionStatus.NO_EFFECT, *claims)


option = Option(
    __name__,
    title="amd_iommu=on on the host",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    rollback="remove it from the command line",
    verified_by="`dmesg` on the host has lines of AMD-Vi",
    changes=("host.kernel_cmdline",),
    judge=judge,
)
