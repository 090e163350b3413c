"""The situation: what the facts say of the machine, derived once and asked by every rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from agents.facts.platform import MachineType
from agents.facts.vm import HostPci
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.situation import all_reduces, copy_curve, devices, gpus, own_machine, pairs, platform, vm_readings
from webapp.diagnosis.situation.pairs import CodesByPair, Pairs, Path
from webapp.diagnosis.situation.platform import Platform, Vendor
from webapp.diagnosis.situation.vm import with_vm

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Situation:
    """facts: the readings, those of the VM under diagnosis among them, with the record of the rule that asks.

    Each part is derived when it is first asked for, once a diagnosis; who asks reads what it is derived from.
    """

    facts: Facts

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
    def platform(self) -> Platform:
        return self.facts.derived(platform.platform)

    @property
    def in_kvm(self) -> bool:
        return self.facts.derived(platform.in_kvm)

    @property
    def outside_kvm(self) -> Platform | None:
        """Bare metal or another hypervisor; None in a KVM guest, and where nothing tells."""
        return self.facts.derived(platform.outside_kvm)

    @property
    def cloud(self) -> str | None:
        """Whose cloud this is, where its hypervisor's settings are not the operator's."""
        return self.facts.derived(platform.cloud)

    @property
    def kvm_hidden(self) -> bool | None:
        return self.facts.derived(platform.kvm_hidden)

    @property
    def platform_refs(self) -> tuple[EvidenceRef, ...]:
        return self.facts.derived(platform.platform_refs)

    @property
    def vendor(self) -> Vendor:
        return self.facts.derived(platform.vendor)

    @property
    def board(self) -> MachineType | None:
        """The emulated board of the VM."""
        return self.facts.derived(vm_readings.board)

    @property
    def board_refs(self) -> tuple[EvidenceRef, ...]:
        return self.facts.derived(vm_readings.board_refs)

    @property
    def gpu_count(self) -> int | None:
        return self.facts.derived(pairs.gpu_count)

    @property
    def gpu_count_refs(self) -> tuple[EvidenceRef, ...]:
        return self.facts.derived(pairs.gpu_count_refs)

    @property
    def listing(self) -> gpus.Listing | None:
        """The driver's count of GPUs beside the bus's; None until both were counted."""
        return self.facts.derived(gpus.listing)

    @property
    def load(self) -> gpus.Load:
        return self.facts.derived(gpus.load)

    @property
    def tokens_flow(self) -> bool | None:
        """Whether output was seen at all; None: nobody said."""
        return self.facts.derived(gpus.tokens_flow)

    @property
    def link(self) -> gpus.Link:
        """The GPUs' PCIe link at its best."""
        return self.facts.derived(gpus.link)

    @property
    def pairs(self) -> Pairs:
        return self.facts.derived(pairs.pairs)

    @property
    def has_nvlink(self) -> bool:
        return self.facts.derived(pairs.has_nvlink)

    @property
    def paths(self) -> tuple[Path, ...]:
        """NVLink's first where there is NVLink."""
        return (Path.NVLINK, Path.PCIE) if self.has_nvlink else (Path.PCIE,)

    @property
    def fabric_state(self) -> str | None:
        return self.facts.derived(pairs.fabric_state)

    def codes(self, path: Path = Path.PCIE) -> tuple[CodesByPair, CodesByPair]:
        """The driver's answers for reads and for writes on one path."""
        return pairs.codes(self.facts, path)

    @property
    def copy_curve(self) -> copy_curve.CopyCurve | None:
        """The time of a copy between two GPUs against its size, as measured here."""
        return self.facts.derived(copy_curve.copy_curve)

    def all_reduce(self, size_bytes: float, ranks: int, *, p2p: bool) -> all_reduces.AllReduceTime | None:
        """One all-reduce of this size as measured here."""
        return all_reduces.all_reduce(self.facts, size_bytes, ranks, p2p=p2p)

    def host_device(self, address: str) -> tuple[HostPci, str] | None:
        """The slot, and the host's address of the device, behind an address on the guest's bus."""
        return devices.host_device(self.facts, address)
