"""Two outputs of one epoch say different things of a fact that does not change by itself.

What does not change between two boots reads the same twice. An epoch is the time between two changes.

Source: a rule of Peerpath's own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.gpu import CLIQUE_CAPABILITY, GPU_COUNT_PCI, GPU_COUNT_SMI
from agents.facts.host import BOOT_LOADER, HOST_CMDLINE, PVE_VERSION, VFIO_BACKEND
from agents.facts.p2p import P2P_NVLINK, P2P_PCIE, P2P_READ, P2P_WRITE, TOPOLOGY, P2pMatrix, TopologyMatrix
from agents.facts.platform import (
    DRIVER_VERSION,
    KERNEL_CMDLINE,
    KVM_VISIBLE,
    MACHINE_TYPE,
    PHYS_BITS,
    PRODUCT_UUID,
    VIRT_KIND,
)
from webapp.diagnosis.case import Case
from webapp.diagnosis.facts import Sourced
from webapp.diagnosis.rule import Clash, Rule
from webapp.diagnosis.situation.platform import CONTAINER_KINDS, KVM_KINDS
from webapp.diagnosis.wording import called

STEADY: tuple[Fact[Any], ...] = (
    VIRT_KIND,
    MACHINE_TYPE,
    KVM_VISIBLE,
    PRODUCT_UUID,
    DRIVER_VERSION,
    KERNEL_CMDLINE,
    PHYS_BITS,
    GPU_COUNT_PCI,
    GPU_COUNT_SMI,
    CLIQUE_CAPABILITY,
    P2P_READ,
    P2P_WRITE,
    P2P_NVLINK,
    P2P_PCIE,
    TOPOLOGY,
    HOST_CMDLINE,
    VFIO_BACKEND,
    BOOT_LOADER,
    PVE_VERSION,
)


def check(case: Case) -> Iterator[Clash]:
    for fact in STEADY:
        known = [s for s in case.facts.all(fact) if _whole(s)]
        pairs = combinations(known, 2)
        clash = next((pair for pair in pairs if _clash(*pair)), None)
        if clash:
            first, second = clash
            text = f"{fact.title}: {_short(first)} in {first.source}, {_short(second)} in {second.source}"
            yield text, first.refs[:2] + second.refs[:2]


def _whole(item: Sourced) -> bool:
    return item.reading.kind is ReadingKind.KNOWN and item.reading.complete


def _clash(first: Sourced, second: Sourced) -> bool:
    apart = first.epoch != second.epoch or first.source == second.source
    return not apart and differ(first, second)


def differ(first: Sourced, second: Sourced) -> bool:
    """Whether two known readings of one fact say different things of the machine."""
    one, other = first.reading.value, second.reading.value
    if first.reading.fact_id == VIRT_KIND.id:
        # "qemu" is what DMI says of a KVM guest, and a container hides what is below it.
        return one != other and not {one, other} <= KVM_KINDS and not {one, other} & CONTAINER_KINDS
    if isinstance(one, TopologyMatrix) and isinstance(other, TopologyMatrix):
        return _of_same_pairs(one.gpu_links(), other.gpu_links())
    if isinstance(one, P2pMatrix) and isinstance(other, P2pMatrix):
        return _of_same_pairs(one.pairs(), other.pairs())
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().lower() != other.strip().lower()
    return bool(one != other)


def _of_same_pairs(one: Mapping[Any, object], other: Mapping[Any, object]) -> bool:
    """A part of a matrix is silent about the other pairs."""
    return any(one[pair] != other[pair] for pair in one.keys() & other.keys())


def _short(item: Sourced) -> str:
    value = item.reading.value
    if isinstance(value, P2pMatrix):
        return _counted(map(str, value.pairs().values()))
    if isinstance(value, TopologyMatrix):
        return _counted(value.gpu_links().values())
    return called(value)[:80] if isinstance(value, str | int | bool) else "one value"


def _counted(codes: Iterable[str]) -> str:
    """ "NS on 12 of 12 pairs"."""
    counts = Counter(codes)
    total = sum(counts.values())
    return ", ".join(f"{code} on {n} of {total} pairs" for code, n in counts.most_common())


rule = Rule(__name__, "Two outputs that disagree", check)
