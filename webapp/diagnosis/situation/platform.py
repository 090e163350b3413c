"""What the diagnosed machine stands on: a KVM guest, another hypervisor's guest, or bare metal."""

from __future__ import annotations

from enum import StrEnum

from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.facts.vm import VM_ID
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts

KVM_KINDS = frozenset({"kvm", "qemu"})
CONTAINER_KINDS = frozenset(
    {"lxc", "lxc-libvirt", "docker", "podman", "openvz", "systemd-nspawn", "rkt", "proot", "pouch"}
)


# Clouds whose guests run on KVM that they own (systemd-detect-virt's names), by what people call them.
RENTED = {"amazon": "Amazon", "google": "Google"}


class Ground(StrEnum):
    KVM = "kvm"
    OTHER_HYPERVISOR = "other hypervisor"
    BARE_METAL = "bare metal"
    UNKNOWN = "unknown"


def ground(facts: Facts) -> Ground:
    """A container says nothing of what is below it. Kinds are systemd-detect-virt's (manual page)."""
    if in_kvm(facts):
        return Ground.KVM
    return without_kvm(facts) or Ground.UNKNOWN


def in_kvm(facts: Facts) -> bool:
    """Each of three facts shows it, and what shows it is read."""
    kind = facts.value(VIRT_KIND, where=lambda kind: kind.lower() in KVM_KINDS)
    visible, vm = facts.value(KVM_VISIBLE, where=bool), facts.value(VM_ID)
    return bool(kind or visible) or vm is not None


def without_kvm(facts: Facts) -> Ground | None:
    """Bare metal or another hypervisor; None in a KVM guest, and where nothing tells."""
    kind = facts.value(VIRT_KIND, where=lambda kind: kind.lower() not in {"", *KVM_KINDS, *CONTAINER_KINDS})
    if kind is None or in_kvm(facts):
        return None
    return Ground.BARE_METAL if kind.lower() == "none" else Ground.OTHER_HYPERVISOR


def rented_from(facts: Facts) -> str | None:
    """Whose cloud this is, where its hypervisor is KVM and its settings are not the operator's."""
    return RENTED.get((facts.value(VIRT_KIND, where=lambda kind: kind.lower() in RENTED) or "").lower())


def ground_refs(facts: Facts) -> tuple[EvidenceRef, ...]:
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
