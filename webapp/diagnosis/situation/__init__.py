"""The situation: what the facts say of the machine, derived once and asked by every rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agents.facts.vm import HostPci
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation import devices, gpus, own_machine, vm_readings
from webapp.diagnosis.situation import pairs as gpu_pairs
from webapp.diagnosis.situation import platform as platforms
from webapp.diagnosis.situation.all_reduces import AllReduceTime, all_reduce
from webapp.diagnosis.situation.copy_curve import copy_curve as copy_curve_of
from webapp.diagnosis.situation.pairs import CodesByPair, Path
from webapp.diagnosis.situation.vm import with_vm

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One part of the situation. It is derived when a rule first asks for it, once a diagnosis; each rule that
    asks reads what it is derived from."""

    derive: Callable[[Facts], T]

    def __get__(self, situation: Situation, owner: type[Situation]) -> T:
        return situation.facts.derived(self.derive)


@dataclass(frozen=True, slots=True)
class Situation:
    """facts: the readings, those of the VM under diagnosis among them, with the record of the rule that asks.

    outside_kvm: bare metal or another hypervisor. cloud: whose, where its hypervisor's settings are not the
    operator's. board: the VM's emulated one. listing: the driver's count of GPUs beside the bus's. link: the
    GPUs' PCIe link at its best. copy_curve: of copies between two GPUs as measured here. Each is None where
    nothing tells.
    """

    facts: Facts

    platform = Part(platforms.platform)
    in_kvm = Part(platforms.in_kvm)
    outside_kvm = Part(platforms.outside_kvm)
    cloud = Part(platforms.cloud)
    kvm_hidden = Part(platforms.kvm_hidden)
    platform_refs = Part(platforms.platform_refs)
    vendor = Part(platforms.vendor)
    board = Part(vm_readings.board)
    board_refs = Part(vm_readings.board_refs)
    gpu_count = Part(gpu_pairs.gpu_count)
    gpu_count_refs = Part(gpu_pairs.gpu_count_refs)
    listing = Part(gpus.listing)
    load = Part(gpus.load)
    tokens_flow = Part(gpus.tokens_flow)
    link = Part(gpus.link)
    pairs = Part(gpu_pairs.pairs)
    has_nvlink = Part(gpu_pairs.has_nvlink)
    fabric_state = Part(gpu_pairs.fabric_state)
    copy_curve = Part(copy_curve_of)

    @classmethod
    def of(cls, facts: Facts, vmid: int | None = None) -> Situation:
        """With the VM's readings. vmid: which VM, where the evidence names several and does not tell."""
        return cls(with_vm(facts.scope(), vmid))

    @property
    def own_machine(self) -> Situation:
        """The same without what was measured on other machines: their figures decide nothing here."""
        return Situation(own_machine.own_readings(self.facts))

    def scope(self) -> Situation:
        """The same situation, with a record of its own for one rule."""
        return Situation(self.facts.scope())

    @property
    def aside(self) -> Situation:
        """The same situation, for words alone: what is read here decides nothing."""
        return Situation(self.facts.aside)

    def exception(self, rule: Callable[[Situation], T]) -> T:
        """What an exception to a rule says. One that does not hold (a false value) counts for nothing read."""
        return self.facts.exception(lambda facts: rule(Situation(facts)))

    @property
    def paths(self) -> tuple[Path, ...]:
        """NVLink's first where there is NVLink."""
        return (Path.NVLINK, Path.PCIE) if self.has_nvlink else (Path.PCIE,)

    def codes(self, path: Path = Path.PCIE) -> tuple[CodesByPair, CodesByPair]:
        """The driver's answers for reads and for writes on one path."""
        return gpu_pairs.codes(self.facts, path)

    def all_reduce(self, size_bytes: float, ranks: int, *, p2p: bool) -> AllReduceTime | None:
        """One all-reduce of this size as measured here."""
        return all_reduce(self.facts, size_bytes, ranks, p2p=p2p)

    def host_device(self, address: str) -> tuple[HostPci, str] | None:
        """The slot, and the host's address of the device, behind an address on the guest's bus."""
        return devices.host_device(self.facts, address)
