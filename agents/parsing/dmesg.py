"""The kernel log: `dmesg` with any kind of time stamp, `journalctl -k`, or bare lines in quotes.

Line formats: Linux drivers/pci/setup-res.c and setup-bus.c (before and after 6.10, which moved the
resource before the colon), drivers/iommu/{intel,amd}, arch/x86/kernel/cpu/hypervisor.c; NVIDIA open
kernel modules 595.45, nv.c and nv-msg (NVRM lines).
"""

import re
from collections.abc import Iterator

from agents.facts.gpu import BarFailure, XidEvent
from agents.facts.platform import Iommu
from agents.parsing.lines_with import lines_with
from agents.parsing.lspci import LINE_CAP, full_address

_STAMP = re.compile(
    r"^\s*(?:[>|]\s?)*(?:\.{3}\s)?\s*(?:<\d+>)?\s*"
    r"(?:\[[^\]]{1,40}\]\s*|\S{3,9}\s+\d+ [\d:]{8} \S+ kernel: |\d{4}-\d\d-\d\dT\S+ (?:\S+ )?(?:kernel: )?)?"
)
_BDF = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f](?:\.[0-7])?)"
_REGION = re.compile(
    rf"\bpci {_BDF}: (?:BAR (?P<bar>\d{{1,2}})|(?P<window>bridge window))\b(?P<rest>.{{0,200}})$", re.IGNORECASE
)
_NO_SPACE = re.compile(r"no space|failed to assign|can't assign")
_ASSIGNED = re.compile(r"\]: assigned|: assigned \[")
_NVRM_BAR = re.compile(rf"NVRM: BAR(?P<bar>\d) is 0M @ 0x0 \(PCI:{_BDF}\)", re.IGNORECASE)
_XID = re.compile(rf"\bXid \((?:PCI:)?{_BDF}\): (?P<code>\d{{1,4}})(?:, )?(?P<text>.{{0,400}})", re.IGNORECASE)
_HYPERVISOR = re.compile(r"\bHypervisor detected: (\S.{0,40})$")
# Logs of machines without AMD's IOMMU hold both too: code that runs on every x86 kernel prints them.
_NO_PROOF = re.compile(r"AMD IOMMUv2 functionality not available|Unknown option")
_IOMMU_ON = re.compile(
    r"DMAR: (?:IOMMU enabled|Intel\(R\) Virtualization Technology for Directed I/O)|"
    r"DMAR: dmar\d+: Using Queued invalidation|Enabled IRQ remapping|"
    r"AMD-Vi: (?:Found IOMMU|Interrupt remapping enabled|Virtual APIC enabled)|"
    r"AMD-Vi: IOMMU performance counters|Detected AMD IOMMU #|Adding to iommu group|"
    r"virtio_iommu virtio\d+: input address"
)
_IOMMU_OFF = re.compile(r"DMAR: IOMMU disabled|AMD-Vi: .{0,30}disabled by|AMD-Vi: Disabling")
_DOMAIN = re.compile(r"\biommu: Default domain type: (Translated|Passthrough)")
_UNIT = re.compile(r"\bdmar(\d+): |Detected AMD IOMMU #(\d+)|Found IOMMU at (\S+)")
_REMAPPING = re.compile(r"Interrupt remapping enabled|Enabled IRQ remapping")


def bar_failures(text: str) -> tuple[tuple[BarFailure, ...], tuple[int, ...]]:
    """Memory regions of devices and bridges that got no address, with their 1-based lines.

    A region that a later line assigns (as with pci=realloc) is no failure. I/O ports, ROMs and regions of SR-IOV
    functions are left out as harmless. "can't reserve" means something else: a driver holds the region.
    """
    failures: dict[tuple[str, str], tuple[BarFailure, int]] = {}
    for number, line in _lines_with_words(text, "NVRM: BAR", ": BAR ", ": bridge window"):
        nvrm, region = _NVRM_BAR.search(line), _REGION.search(line)
        if nvrm:
            key = (full_address(nvrm["address"]), f"NVRM{nvrm['bar']}")
            failures[key] = (BarFailure(key[0], int(nvrm["bar"]), line), number)
        elif region and _is_memory(region):
            address = full_address(region["address"])
            key = (address, region["bar"] or region["window"])
            if _NO_SPACE.search(region["rest"]):
                bar = int(region["bar"]) if region["bar"] and int(region["bar"]) < 6 else None
                failures.setdefault(key, (BarFailure(address, bar, line), number))
            elif _ASSIGNED.search(region["rest"]):
                failures.pop(key, None)
    return tuple(f for f, _ in failures.values()), tuple(n for _, n in failures.values())


def _is_memory(region: re.Match[str]) -> bool:
    """Old kernels number the ROM 6, SR-IOV regions 7 to 12 and bridge windows from 13."""
    rest = region["rest"]
    bar = int(region["bar"]) if region["bar"] else 0
    return "[mem" in rest and not 6 <= bar <= 12


def xid_events(text: str) -> tuple[tuple[XidEvent, ...], tuple[int, ...]]:
    """Every Xid line: the code is the number after the closing parenthesis."""
    matches = [(number, _XID.search(line)) for number, line in _lines_with_words(text, "Xid (")]
    events = [(number, match) for number, match in matches if match]
    return (
        tuple(XidEvent(full_address(m["address"]), int(m["code"]), m["text"].strip()) for _, m in events),
        tuple(number for number, _ in events),
    )


def iommu(text: str) -> tuple[Iommu, tuple[int, ...]] | None:
    """The IOMMU as this kernel's log shows it; None when no line is about one.

    "Default domain type" alone shows no IOMMU: kernels print it without one. "due to virtualization" is a kernel's
    comment on an emulated IOMMU.
    """
    lines: list[int] = []
    vendor, domain, enabled, remapping, emulated = None, None, None, None, None
    units: set[str] = set()
    for number, line in _lines_with_words(text, "DMAR", "AMD-Vi", "AMD IOMMU", "iommu", "remapping"):
        domain_found = _DOMAIN.search(line)
        if domain_found:
            domain = domain_found[1]
        if not _is_iommu(line):
            continue
        lines.append(number)
        vendor = vendor or _vendor(line)
        units |= {next(filter(None, match.groups())) for match in _UNIT.finditer(line)}
        enabled = True if _IOMMU_ON.search(line) else enabled
        enabled = False if _IOMMU_OFF.search(line) else enabled
        remapping = True if _REMAPPING.search(line) else remapping
        emulated = True if "due to virtualization" in line else emulated
    if not lines:
        return None
    return Iommu(enabled, vendor, domain, remapping, len(units) or None, emulated), tuple(lines)


def _is_iommu(line: str) -> bool:
    if _NO_PROOF.search(line):
        return False
    return "DMAR" in line or "AMD-Vi" in line or "AMD IOMMU" in line or bool(_IOMMU_ON.search(line))


def _vendor(line: str) -> str | None:
    if "DMAR" in line:
        return "intel"
    if "AMD" in line:
        return "amd"
    return "virtio" if "virtio_iommu" in line else None


def hypervisor(text: str) -> tuple[str, int] | None:
    """The hypervisor that the kernel detected by CPUID ("KVM"), and the line."""
    for number, line in _lines_with_words(text, "Hypervisor detected"):
        match = _HYPERVISOR.search(line)
        if match:
            return match[1].strip(), number
    return None


def is_whole(text: str) -> bool:
    """Whether a log reaches back to the boot and is no excerpt, so that a missing line proves an absence."""
    head = text[:20_000]
    return "Linux version " in head and "ommand line:" in head and text.count("\n") > 150


def _lines_with_words(text: str, *words: str) -> Iterator[tuple[int, str]]:
    """The lines that hold one of these words, without their time stamps."""
    for number, raw in lines_with(text, words):
        yield number, _STAMP.sub("", raw[:LINE_CAP], count=1).rstrip()
