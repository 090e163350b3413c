"""The Intel IOMMU: on by default from Proxmox kernel 6.8, to be asked for before.

Source: Proxmox VE administration guide, PCI passthrough.
"""

from agents.facts.host import HOST_IOMMU, PLATFORM
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "Proxmox VE administration guide, PCI passthrough"


def judge(case: Case) -> Advice:
    facts, iommu, platform = case.facts, case.facts.value(HOST_IOMMU), case.facts.value(PLATFORM)
    refs = facts.refs(HOST_IOMMU, PLATFORM)
    vendor = f"{platform.vendor} {platform.cpu}" if platform else ""
    if "AMD" in vendor or (iommu and "amd" in (iommu.vendor or "").lower()):
        text = "the host has an AMD processor; the option is Intel’s"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, refs))
    if iommu and iommu.enabled:
        return advise(OptionStatus.DONE, seen("the IOMMU is on", facts.refs(HOST_IOMMU), SOURCE))
    if iommu and iommu.enabled is False:
        text = "the IOMMU is off, and nothing can be passed through without it; P2P is another matter"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs))
    text = "needed for passthrough on Intel before kernel 6.8; a VM with GPUs shows that it is on"
    return advise(OptionStatus.NO_EFFECT, because(text, SOURCE))


option = Option(
    __name__,
    title="intel_iommu=on on the host",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    rollback="remove it from the command line and reboot",
    verified_by="`dmesg` on the host says “DMAR: IOMMU enabled”",
    changes=("host.kernel_cmdline", "host.iommu", "host.iommu_groups"),
    judge=judge,
    kernel_option="intel_iommu=on",
    by_hand="On the host, as root: add `intel_iommu=on` to its kernel command line, and reboot it.",
)
