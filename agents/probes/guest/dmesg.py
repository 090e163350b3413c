"""The kernel log's lines about GPU address regions, Xid errors, an IOMMU and the hypervisor.

The target filters the log, so that little text travels. `dmesg` needs root where kernel.dmesg_restrict is set; the
journal of this boot is the alternative. A missing line counts only when the log still reaches back to the boot,
because the kernel's buffer drops its oldest lines.
"""

import re

from agents.facts import Reading
from agents.facts.gpu import BAR_FAILURES, XID_EVENTS, BarFailure, XidEvent
from agents.facts.platform import GUEST_IOMMU, KVM_VISIBLE, Iommu
from agents.parsing import dmesg
from agents.probe import Command, Output, Probe, Readings, Signature

# Lines are counted before the filter. sysfs lists the IOMMUs when the log has lost their lines.
_SH = r"""{ dmesg || journalctl -k -b --no-pager; } | awk '
{ line = tolower($0) } /Linux version / { boot = 1 }
line ~ /assign|no space|nvrm|xid|dmar|amd-vi|iommu|fallen off|hypervisor detected|hardware name/ ||
line ~ /pcieport .*(aer|link)/ {
  if (shown < 3000) { print substr($0, 1, 1000); shown++ } else dropped++
}
END { printf "kernel log: %d lines, from boot: %s, left out: %d\n", NR, boot ? "yes" : "no", dropped }'
for i in /sys/class/iommu/*; do [ ! -e "$i" ] || echo "sysfs iommu: ${i##*/}"; done"""

_SUMMARY = re.compile(r"^kernel log: (\d+) lines, from boot: (yes|no), left out: (\d+)$", re.MULTILINE)
# journalctl prints only "-- No entries --" for a user without rights.
_EMPTY_LINES = 3
# The form of a kernel log of any machine; the first three patterns open any log.
STARTS = (
    r"^\s*(?:[>|] ?)*\[ *\d+\.\d{6}\] \S",
    r"^\s*\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\] \S",
    r"^\s*\S{3,9} +\d+ [\d:]{8} \S+ kernel: ",
    r"\bNVRM: (?:Xid|BAR\d|GPU|This PCI|loading|_kgsp|Rm)",
    r"^\s*pci [0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]: (?:BAR|bridge window)",
)
BELONGS = r"^\s*(?:[>|] ?)*\[[^\]]{6,40}\] |\bkernel: |\bNVRM: |^kernel log: |^sysfs iommu: |^\s*pci "
_FACTS = (BAR_FAILURES, XID_EVENTS, GUEST_IOMMU, KVM_VISIBLE)


def parse(output: Output) -> Readings:
    text = output.stdout
    summary = _SUMMARY.search(text[-100_000:])
    lines = int(summary[1]) if summary else 0
    if output.tool_missing:
        return tuple(f.unsupported("neither dmesg nor journalctl") for f in _FACTS)
    if (summary and lines < _EMPTY_LINES) or not text.strip() or (not summary and _only_refusal(output)):
        why = "reading the kernel log was refused" if output.refused else "the log came out empty"
        return tuple(f.not_run(why) for f in _FACTS)
    whole = summary[2] == "yes" and summary[3] == "0" if summary else dmesg.is_whole(text)
    whole = whole and not output.truncated
    return (_bars(text, whole), _xids(text, whole), _iommu(text, whole), _kvm(text))


def _only_refusal(output: Output) -> bool:
    return output.refused and len(output.lines) < 4


def _bars(text: str, whole: bool) -> Reading[tuple[BarFailure, ...]]:
    failures, lines = dmesg.bar_failures(text)
    if failures:
        return BAR_FAILURES.known(failures, lines=lines)
    if whole:
        return BAR_FAILURES.absent("no region went without an address since the boot")
    return BAR_FAILURES.not_run("no such line, but this log does not hold the whole boot")


def _xids(text: str, whole: bool) -> Reading[tuple[XidEvent, ...]]:
    events, lines = dmesg.xid_events(text)
    if events:
        return XID_EVENTS.known(events, lines=lines)
    if whole:
        return XID_EVENTS.absent("no Xid since the boot")
    return XID_EVENTS.not_run("no Xid here, but this log does not hold the whole boot")


def _iommu(text: str, whole: bool) -> Reading[Iommu]:
    answer = dmesg.iommu(text)
    if answer:
        return GUEST_IOMMU.known(answer[0], lines=answer[1])
    if "\nsysfs iommu: " in text[-20_000:]:
        return GUEST_IOMMU.known(Iommu(enabled=True))
    if whole:
        return GUEST_IOMMU.absent("no IOMMU since the boot, the normal case in a VM")
    return GUEST_IOMMU.not_run("no line about one, but this log does not hold the whole boot")


def _kvm(text: str) -> Reading[bool]:
    answer = dmesg.hypervisor(text)
    if answer and answer[0].startswith("KVM"):
        return KVM_VISIBLE.known(True, lines=(answer[1],))
    return KVM_VISIBLE.not_run("no line names KVM; guest.virt_kind looks closer")


probe = Probe(
    __name__,
    title="Kernel log",
    commands=(Command(_SH, needs=("awk",), root=True),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"\bdmesg\b|journalctl\b.*(?:-\w*k|--dmesg)|kern\.log",
        starts=STARTS,
        belongs=BELONGS,
        score=0.85,
        any_machine=True,
        between=("guest.kernel_cmdline", "guest.dmi"),
    ),
    timeout_s=20,
    cap_kib=1024,
    root_adds="the kernel log, where the system keeps it from users (kernel.dmesg_restrict)",
)
