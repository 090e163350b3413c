"""What the diagnosed machine runs on (a KVM guest, another hypervisor's guest, bare metal), and whose GPUs it has."""

from enum import StrEnum

from agents.facts.gpu import GPU_COUNT_SMI, GPUS, PCI_GPUS
from agents.facts.host import PVE_VERSION
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.facts.vm import VM_ID
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts

KVM_KINDS = frozenset({"kvm", "qemu"})
CONTAINER_KINDS = frozenset(
    {"lxc", "lxc-libvirt", "docker", "podman", "openvz", "systemd-nspawn", "rkt", "proot", "pouch"}
)
LXC_KINDS = frozenset({"lxc", "lxc-libvirt"})


class Platform(StrEnum):
    """proxmox: a KVM guest whose host is Proxmox VE. other: a hypervisor that is none of these. A container
    says nothing of what is below it."""

    PROXMOX = "proxmox"
    KVM = "kvm"
    VMWARE = "vmware"
    HYPERV = "hyperv"
    XEN = "xen"
    AWS = "aws"
    GOOGLE = "google"
    WSL = "wsl"
    OTHER = "other"
    LXC = "lxc"
    CONTAINER = "container"
    BARE_METAL = "bare_metal"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """What a platform outside KVM is called in a sentence."""
        return "bare metal" if self is Platform.BARE_METAL else "other hypervisor"


HYPERVISORS = frozenset(
    {Platform.VMWARE, Platform.HYPERV, Platform.XEN, Platform.AWS, Platform.GOOGLE, Platform.WSL, Platform.OTHER}
)
"""Those that are not the operator's own KVM."""


class Vendor(StrEnum):
    """Whose GPUs they are. Other makers' are not read yet."""

    NVIDIA = "nvidia"
    UNKNOWN = "unknown"


# systemd-detect-virt's names (manual page) of what is neither KVM nor a container.
_BY_KIND = {
    "none": Platform.BARE_METAL,
    "vmware": Platform.VMWARE,
    "microsoft": Platform.HYPERV,
    "xen": Platform.XEN,
    "amazon": Platform.AWS,
    "google": Platform.GOOGLE,
    "wsl": Platform.WSL,
}
# Clouds whose guests run on KVM that they own.
_CLOUDS = {"amazon": "Amazon", "google": "Google"}


def platform(facts: Facts) -> Platform:
    if in_kvm(facts):
        return Platform.PROXMOX if facts.any_of(PVE_VERSION, VM_ID) else Platform.KVM
    kind = (facts.value(VIRT_KIND) or "").lower()
    if kind in CONTAINER_KINDS:
        return Platform.LXC if kind in LXC_KINDS else Platform.CONTAINER
    return outside_kvm(facts) or Platform.UNKNOWN


def in_kvm(facts: Facts) -> bool:
    """Each of three facts shows it, and what shows it is read."""
    kind = facts.value(VIRT_KIND, where=lambda kind: kind.lower() in KVM_KINDS)
    visible, vm = facts.value(KVM_VISIBLE, where=bool), facts.value(VM_ID)
    return bool(kind or visible) or vm is not None


def outside_kvm(facts: Facts) -> Platform | None:
    """Bare metal or another hypervisor; None in a KVM guest, and where nothing tells."""
    kind = facts.value(VIRT_KIND, where=lambda kind: kind.lower() not in {"", *KVM_KINDS, *CONTAINER_KINDS})
    if kind is None or in_kvm(facts):
        return None
    return _BY_KIND.get(kind.lower(), Platform.OTHER)


def cloud(facts: Facts) -> str | None:
    """Whose cloud this is, where its hypervisor is KVM and its settings are not the operator's."""
    return _CLOUDS.get((facts.value(VIRT_KIND, where=lambda kind: kind.lower() in _CLOUDS) or "").lower())


def platform_refs(facts: Facts) -> tuple[EvidenceRef, ...]:
    return facts.refs(VIRT_KIND, KVM_VISIBLE)


def kvm_hidden(facts: Facts) -> bool | None:
    """Whether the KVM signature is kept from the guest; None: not known.

    systemd-detect-virt prints "kvm" for the CPUID signature and "qemu" for DMI alone; the latter is then read
    as a KVM that is not visible. Firmware's names by themselves say nothing of the signature.
    """
    visible = facts.value(KVM_VISIBLE)
    if visible is not None:
        return not visible and in_kvm(facts)
    return False if facts.value(VIRT_KIND, where=lambda kind: kind.lower() == "kvm") else None


def vendor(facts: Facts) -> Vendor:
    """By nvidia-smi, or by NVIDIA's devices on the bus."""
    return Vendor.NVIDIA if facts.any_of(GPUS, GPU_COUNT_SMI, PCI_GPUS) else Vendor.UNKNOWN
