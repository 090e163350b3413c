"""Tells a host's output from a guest's by words that only one of them prints."""

import re

from agents.facts.fact import View

_HOST = re.compile(
    r"\d-pve\b|\bvfio|[Pp]roxmox|\bpve[-/]|/etc/pve|\bkvm_(?:amd|intel)\b|\bvmbr\d|on bare hardware"
    r"|\biommugroup\b|\bhostpci\d"
    r"|\b(?:qm|pct) (?:config|list|showcmd|pending|start|status)\b|\bvirsh |\bpvesh "
)
_GUEST = re.compile(
    r"\bNVRM\b|\bQEMU\b|Hypervisor detected|\b[Vv]irtio|NVIDIA-SMI|\bnvidia-smi\b"
    r"|\[1234:1111\]|\[(?:1af4|1b36):|\bBOCHS|\bVMware\b|\bHyper-V\b|kvm-clock"
    r"|[:：] +KVM$|Amazon EC2|Google Compute Engine|\bXen\b"
    r"|^(?:kvm|qemu|amazon|google|vmware|microsoft|xen|wsl)$",
    re.MULTILINE,
)
# Words that a host does not print even when it describes its guests.
_SURELY_GUEST = re.compile(
    r"NVIDIA-SMI \d|\bNVRM: |Hypervisor detected|\[1234:1111\]|\[(?:1af4|1b36):|\bVirtio\b|QEMU PCI"
)
# A host's words, unless a guest's words are there too: some VMs have an emulated IOMMU.
_PROBABLY_HOST = re.compile(r"\bDMAR\b|\bAMD-Vi\b")


def role_of_words(hint: str) -> View | None:
    words = set(re.split(r"[^a-z0-9]+", hint.lower()))
    if words & {"host", "pve", "proxmox", "hypervisor"}:
        return View.HOST
    return View.GUEST if words & {"guest", "vm"} else None


def role_of_text(text: str) -> View | None:
    """The machine by its words; the host's come first, because its logs also name guests."""
    if _HOST.search(text):
        return View.HOST
    if _GUEST.search(text):
        return View.GUEST
    return View.HOST if _PROBABLY_HOST.search(text) else None


def says_both(text: str) -> bool:
    """Whether the text holds words of both machines, so that they do not decide about its other lines."""
    return bool(_HOST.search(text) and _SURELY_GUEST.search(text))


def says_only(text: str, role: View) -> bool:
    """Whether the text holds words of this machine and none of the other's."""
    host, guest = _HOST.search(text), _GUEST.search(text)
    if role is View.GUEST:
        return bool(guest and not host)
    return not guest and bool(host or _PROBABLY_HOST.search(text))
