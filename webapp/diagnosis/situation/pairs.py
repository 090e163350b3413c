"""Which GPU pairs there are, and which of them are joined by NVLink."""

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations
from operator import itemgetter
from typing import Any

from agents.facts import Fact
from agents.facts.gpu import FABRIC, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_NVLINK, P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, P2pMatrix, TopologyMatrix
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts

Pair = tuple[str, str]
CodesByPair = dict[Pair, P2pCode]

_NVLINK = re.compile(r"NV\d+$")
_NO_FABRIC = frozenset({"", "n/a", "not supported"})


class Path(StrEnum):
    """What joins two GPUs."""

    NVLINK = "nvlink"
    PCIE = "pcie"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Ordered pairs of GPU names ("GPU0"), by the path between them."""

    nvlink: frozenset[Pair]
    pcie: frozenset[Pair]

    def on(self, path: Path) -> frozenset[Pair]:
        return self.nvlink if path is Path.NVLINK else self.pcie


def gpu_count(facts: Facts) -> int | None:
    """GPUs the driver works with; the PCI bus's count only when the driver was not asked.

    A part of a list is a lower bound: a matrix may name more, and one GPU of it is not one in all.
    """
    gpus = facts.value(GPUS, where=len)
    listed = len(gpus) if gpus else facts.value(GPU_COUNT_SMI)
    if listed and _is_part(facts, GPU_COUNT_SMI):
        most = max(listed, len(_names(facts)), facts.value(GPU_COUNT_PCI) or 0)
        return most if most > 1 else None
    seen = listed or len(_names(facts))
    if seen:
        return seen
    on_bus = facts.value(GPU_COUNT_PCI)
    return None if on_bus == 1 and _is_part(facts, GPU_COUNT_PCI) else on_bus


def _is_part(facts: Facts, count: Fact[int]) -> bool:
    def lacks(facts: Facts) -> bool:
        counted = facts.best(count)
        return counted is not None and bool(counted.reading.missing)

    return facts.exception(lacks)


def gpu_count_refs(facts: Facts) -> tuple[EvidenceRef, ...]:
    """What `gpu_count` rests on: the first of its sources that has a value."""
    lists: tuple[Fact[Any], ...] = (GPUS, GPU_COUNT_SMI)
    others: tuple[Fact[Any], ...] = (P2P_READ, P2P_WRITE, TOPOLOGY, GPU_COUNT_PCI)
    sources = (*others, *lists) if _is_part(facts, GPU_COUNT_SMI) else (*lists, *others)
    known = (fact for fact in sources if facts.peek(fact) is not None)
    first = next(known, None)
    return facts.refs(first) if first else ()


def pairs(facts: Facts) -> Pairs:
    """NVLink where the topology lists bonded links, the driver says so, or a switch fabric registers."""
    names = _names(facts) or tuple(f"GPU{i}" for i in range(gpu_count(facts) or 0))
    fabric = fabric_state(facts) is not None
    topology, nvlink = facts.value(TOPOLOGY, where=_linked), facts.value(P2P_NVLINK, where=_allows)
    return _pairs(names, fabric, topology, nvlink)


def _linked(topology: TopologyMatrix) -> bool:
    return any(map(_NVLINK.match, topology.gpu_links().values()))


def _allows(matrix: P2pMatrix) -> bool:
    return P2pCode.OK in matrix.pairs().values()


def _pairs(names: tuple[str, ...], fabric: bool, topology: TopologyMatrix | None, matrix: P2pMatrix | None) -> Pairs:
    every = frozenset(permutations(names, 2))
    if fabric:
        return Pairs(every, frozenset())
    links = topology.gpu_links() if topology else {}
    joined = {pair for pair, link in links.items() if _NVLINK.match(link)}
    joined |= {p for p, code in (matrix.pairs() if matrix else {}).items() if code is P2pCode.OK}
    return Pairs(frozenset(joined), every - joined)


def has_nvlink(facts: Facts) -> bool:
    linked, allowed = facts.value(TOPOLOGY, where=_linked), facts.value(P2P_NVLINK, where=_allows)
    return bool(fabric_state(facts) or linked or allowed)


def fabric_state(facts: Facts) -> str | None:
    """The NVSwitch fabric's state; None on machines without one or when it was not read."""
    fabric = facts.value(FABRIC, where=lambda fabric: fabric.state.lower() not in _NO_FABRIC)
    return None if fabric is None else fabric.state


def codes(facts: Facts, path: Path) -> tuple[CodesByPair, CodesByPair]:
    """The driver's answers for reads and for writes on one path."""
    reads, writes = facts.value(P2P_READ), facts.value(P2P_WRITE)
    on_path = facts.derived(pairs).on(path) if reads or writes else frozenset()
    return _on(reads, on_path), _on(writes, on_path)


def _on(matrix: P2pMatrix | None, on_path: frozenset[Pair]) -> CodesByPair:
    return {p: c for p, c in matrix.pairs().items() if p in on_path} if matrix else {}


def _names(facts: Facts) -> tuple[str, ...]:
    """Of the longest matrix, which alone is read for them."""
    matrices: tuple[Fact[Any], ...] = (P2P_READ, P2P_WRITE, P2P_NVLINK, TOPOLOGY)
    known = [(len(matrix.gpus), fact) for fact in matrices if (matrix := facts.peek(fact))]
    longest = max(known, key=itemgetter(0), default=None)
    matrix = facts.value(longest[1]) if longest else None
    return matrix.gpus if matrix else ()
