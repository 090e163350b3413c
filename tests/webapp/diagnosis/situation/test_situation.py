"""The situation: what a machine is, derived once for all rules."""

from __future__ import annotations

import pytest

from agents.facts.gpu import GPU_COUNT_SMI
from agents.facts.host import PVE_VERSION
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from tests.webapp.diagnosis.building import facts_of
from tests.webapp.diagnosis.sample_facts import facts_at
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.platform import Platform, Vendor


@pytest.mark.parametrize(
    ("kind", "platform"),
    [
        ("kvm", Platform.KVM),
        ("qemu", Platform.KVM),
        ("vmware", Platform.VMWARE),
        ("microsoft", Platform.HYPERV),
        ("xen", Platform.XEN),
        ("amazon", Platform.AWS),
        ("google", Platform.GOOGLE),
        ("wsl", Platform.WSL),
        ("bhyve", Platform.OTHER),
        ("lxc", Platform.LXC),
        ("docker", Platform.CONTAINER),
        ("none", Platform.BARE_METAL),
        ("None", Platform.BARE_METAL),
    ],
)
def test_the_platform_is_what_systemd_says(kind: str, platform: Platform) -> None:
    assert Situation(facts_of(VIRT_KIND.known(kind))).platform is platform


def test_a_container_in_a_kvm_guest_stands_on_kvm() -> None:
    assert Situation(facts_of(VIRT_KIND.known("docker"), KVM_VISIBLE.known(True))).platform is Platform.KVM


def test_a_kvm_guest_whose_host_was_read_is_proxmoxs() -> None:
    guest = VIRT_KIND.known("kvm")
    assert Situation(facts_of(guest, PVE_VERSION.known("9.0.3"))).platform is Platform.PROXMOX
    assert Situation.of(facts_at("host")).platform is Platform.PROXMOX


def test_nothing_read_is_an_unknown_machine() -> None:
    nothing = Situation(facts_of())
    assert nothing.platform is Platform.UNKNOWN
    assert nothing.vendor is Vendor.UNKNOWN
    assert nothing.outside_kvm is None
    assert Situation(facts_of(GPU_COUNT_SMI.known(2))).vendor is Vendor.NVIDIA


def test_a_part_is_derived_once_and_read_by_each_that_asks() -> None:
    situation = Situation.of(facts_at("guest")).own_machine
    one, two, three = situation.scope(), situation.scope(), situation.scope()
    assert one.copy_curve is two.copy_curve
    assert one.pairs is two.pairs
    assert one.facts.reads.used == two.facts.reads.used
    assert "bench.copy" in one.facts.reads.used
    assert not three.facts.reads.every
