"""A host's kernel log, pasted whole: its IOMMU, and device regions that the host itself holds.

The collector's probes read only these lines (host.iommu, host.vfio); people paste everything.
"""

from agents.facts import Reading, ReadingKind
from agents.facts.host import HELD_REGIONS, HOST_IOMMU, HeldRegion
from agents.facts.platform import Iommu
from agents.parsing import dmesg, host_dmesg
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest.dmesg import BELONGS, STARTS
from agents.probes.host import iommu


def parse(output: Output) -> Readings:
    return (_iommu(output), _held_regions(output))


def _iommu(output: Output) -> Reading[Iommu]:
    """An excerpt without a line about an IOMMU proves nothing."""
    (reading,) = iommu.parse(output)
    if reading.kind is ReadingKind.UNREADABLE:
        return HOST_IOMMU.not_run("no line about an IOMMU, but this log does not hold the whole boot")
    return reading


def _held_regions(output: Output) -> Reading[tuple[HeldRegion, ...]]:
    regions, lines = host_dmesg.held_regions(output.stdout)
    if regions:
        return HELD_REGIONS.known(regions, lines=lines)
    if output.tool_missing:
        return HELD_REGIONS.unsupported("neither dmesg nor journalctl")
    if dmesg.is_whole(output.stdout) and not output.truncated:
        return HELD_REGIONS.absent("the host held no region of a device")
    return HELD_REGIONS.not_run("no such line, but this log does not hold the whole boot")


probe = Probe(
    __name__,
    title="Kernel log of the host",
    commands=(
        Command("dmesg", needs=("dmesg",), root=True),
        Command("journalctl -k -b --no-pager", needs=("journalctl",), root=True),
    ),
    supplies=(HOST_IOMMU, HELD_REGIONS),
    parse=parse,
    signature=Signature(
        typed=r"^(?!.*(?:iommu|IOMMU|DMAR|AMD-Vi|dmar|vfio|QEMU))"
        r".*(?:\bdmesg\b|journalctl\b.*(?:-\w*k|--dmesg)|kern\.log)",
        starts=STARTS[:3],
        belongs=BELONGS + r"|\bQEMU\[\d+\]: |\bvfio",
        score=0.85,
        any_machine=True,
        between=("host.vfio", "host.kernel_cmdline", "host.iommu_groups"),
    ),
    root_adds="the kernel log",
    on_demand=True,
)
