"""The host's IOMMU: on or off, whose, the default domain, interrupt remapping, how many units.

Kernel log (Linux drivers/iommu), /sys/class/iommu and /sys/kernel/iommu_groups: groups exist only while
an IOMMU is on. The default domain is for the host's own devices; VFIO makes domains of its own.
"""

import re
from dataclasses import replace

from agents.facts import Reading
from agents.facts.host import HOST_IOMMU
from agents.facts.platform import Iommu
from agents.parsing import dmesg
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""set -- /sys/kernel/iommu_groups/*; [ -e "$1" ] || shift; echo "iommu groups: $#"
set -- /sys/class/iommu/*; [ -e "$1" ] || shift; echo "iommu units: $*"
known='DMAR|AMD-Vi|AMD IOMMU|iommu: |IRQ remapping|arm-smmu'
wanted() { grep -E "$known" | grep -v 'Adding to iommu' | head -n 300; }
journalctl -k -b --no-pager 2>/dev/null | wanted
dmesg | wanted"""
_GROUPS = re.compile(r"(?m)^iommu groups: (\d{1,6})\s*$")
_UNITS = re.compile(r"(?m)^iommu units: (.{0,4000})$")
_DOMAIN = re.compile(r"iommu: Default domain type: (Translated|Passthrough)")
_UNKNOWN_OPTION = re.compile(r"AMD-Vi: Unknown option - '([^'\n]{1,40})'")
_VENDORS = {"ivhd": "amd", "dmar": "intel", "smmu": "arm"}


def parse(output: Output) -> Readings:
    logged = dmesg.iommu(output.stdout)
    groups, domain = _GROUPS.search(output.stdout), _DOMAIN.search(output.stdout)
    if logged is None and groups is None and domain is None:
        return (_no_reading(output),)
    iommu, lines = logged or (Iommu(), ())
    iommu = _with_sysfs(iommu, groups, _UNITS.search(output.stdout))
    if iommu.default_domain is None and domain:
        iommu = replace(iommu, default_domain=domain[1])
    if groups:
        lines = (*lines, output.stdout.count("\n", 0, groups.start()) + 1)
    parts = ("enabled", "default_domain", "interrupt_remapping")
    missing = tuple(part for part in parts if getattr(iommu, part) is None and iommu.enabled is not False)
    reading = HOST_IOMMU.known(iommu, lines=tuple(sorted(lines)), missing=missing)
    unknown = _UNKNOWN_OPTION.search(output.stdout)
    if unknown:
        why = f"the kernel does not know amd_iommu={unknown[1]} and ignores it; harmless"
        reading = replace(reading, detail=why)
    return (reading,)


def _with_sysfs(iommu: Iommu, groups: re.Match[str] | None, units: re.Match[str] | None) -> Iommu:
    """Adds sysfs: groups decide whether the IOMMU is on; the entries of /sys/class/iommu are its units."""
    names = [path.rpartition("/")[2] for path in units[1].split()] if units else []
    vendor = next((_VENDORS[n[:4]] for n in names if n[:4] in _VENDORS), iommu.vendor)
    enabled = int(groups[1]) > 0 if groups else iommu.enabled
    return replace(iommu, enabled=enabled, vendor=vendor, units=len(names) or iommu.units)


def _no_reading(output: Output) -> Reading[Iommu]:
    if output.tool_missing:
        return HOST_IOMMU.unsupported("neither kernel log nor sysfs")
    if output.refused:
        return HOST_IOMMU.not_run("reading the kernel log was refused; root may")
    if dmesg.is_whole(output.stdout):
        return HOST_IOMMU.absent("the whole kernel log has no line about an IOMMU")
    return HOST_IOMMU.unreadable("no line about an IOMMU in the output")


probe = Probe(
    __name__,
    title="Host IOMMU",
    commands=(Command(_SH, root=True),),
    supplies=(HOST_IOMMU,),
    parse=parse,
    signature=Signature(
        typed=r"(?:dmesg|journalctl)\b.*(?:-i\w*\s+iommu|DMAR|AMD-Vi|-i\w*\s+['\"]?(?:dmar|iommu))",
        starts=(
            r"\bDMAR(?:-IR)?: ",
            r"\bAMD-Vi: ",
            r"\biommu: Default domain type: ",
            r"\bDetected AMD IOMMU #",
            r"^iommu groups: \d+",
        ),
        # A kernel command line also holds "iommu", but has its own reader.
        belongs=r"^(?!\s*(?:GRUB_CMDLINE_|BOOT_IMAGE=|initrd=|root=))"
        r".*(?:DMAR|AMD-Vi|AMD IOMMU|[iI][oO][mM][mM][uU]|remapping)",
        score=0.7,
        any_machine=True,
        between=("host.iommu_groups",),
    ),
    timeout_s=20,
    root_adds="the kernel log",
)
