"""Machines that should be alike, side by side: what each says, and which one says something else.

A word (driver, board, link) is odd where more than half of the machines that know it agree on another. A
figure is odd where it is more than a tenth from the median: twice the 5 % within which repeated runs of one
machine are called equal (record 17). Two machines can differ, and neither is the odd one. What is not known
is neither alike nor odd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from agents.facts import Fact
from agents.facts.bench import ALLREDUCE, COPY, CopyPath, Timing
from agents.facts.gpu import GPUS
from agents.facts.nccl import NCCL_VERSION
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pMatrix
from agents.facts.platform import CPU_MODEL, CUDA_VERSION, DRIVER_VERSION, MACHINE_TYPE, NUMA_NODES, VIRT_KIND
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.wording import called

LEAST_FOR_ODD = 3
MOST_OFF = 0.10
SMALL, LARGE = 12 * 2**10, 16 * 2**20  # bytes; every pair is measured at both (record 16)


class Standing(StrEnum):
    ALIKE = "alike"
    ODD = "odd"
    DIFFERS = "differs"  # and nobody can say which one is right
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cell:
    """source: the evidence it was read from, "" where nothing known was read."""

    text: str
    standing: Standing
    source: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """usual: what most say, or the median; "" when there is no such thing."""

    title: str
    usual: str
    cells: tuple[Cell, ...]

    @property
    def worth_a_look(self) -> bool:
        return any(cell.standing in (Standing.ODD, Standing.DIFFERS) for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Comparison:
    """machines: names in the order of the cells. odd: those with the most odd cells first, and in how
    many rows."""

    machines: tuple[str, ...]
    rows: tuple[Row, ...]
    odd: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Trait:
    """of: what a machine's facts say, None when they do not know. unit: makes it a figure."""

    title: str
    fact: Fact[Any]
    of: Callable[[Facts], str | float | None]
    unit: str = ""


def compared(machines: Mapping[str, Facts]) -> Comparison:
    """Every trait that at least one machine knows."""
    names = tuple(machines)
    told = (_row(trait, tuple(machines.values())) for trait in _TRAITS)
    rows = tuple(row for row in told if {c.standing for c in row.cells} - {Standing.UNKNOWN})
    odd = [
        (name, tuple(row.title for row in rows if row.cells[n].standing is Standing.ODD))
        for n, name in enumerate(names)
    ]
    ranked = sorted((item for item in odd if item[1]), key=lambda item: (-len(item[1]), item[0]))
    return Comparison(names, rows, tuple(ranked))


def _row(trait: _Trait, machines: tuple[Facts, ...]) -> Row:
    values = [trait.of(facts) for facts in machines]
    known = [value for value in values if value is not None]
    judge, usual = _figures(trait, known) if trait.unit else _words(known)
    cells = []
    for facts, value in zip(machines, values, strict=True):
        if value is None:
            cells.append(Cell("not known", Standing.UNKNOWN))
        else:
            best = facts.best(trait.fact)
            cells.append(Cell(_text(value, trait.unit), judge(value), best.source if best else ""))
    return Row(trait.title, usual, tuple(cells))


Judge = Callable[[str | float], Standing]


def _words(known: list[str | float]) -> tuple[Judge, str]:
    if len(set(known)) <= 1:
        return lambda _: Standing.ALIKE, str(known[0]) if known else ""
    usual, count = Counter(known).most_common(1)[0]
    if len(known) < LEAST_FOR_ODD or 2 * count <= len(known):
        return lambda _: Standing.DIFFERS, ""
    return lambda value: Standing.ALIKE if value == usual else Standing.ODD, str(usual)


def _figures(trait: _Trait, known: list[str | float]) -> tuple[Judge, str]:
    numbers = [float(value) for value in known]
    if not numbers:
        return lambda _: Standing.UNKNOWN, ""
    middle = median(numbers)
    off = Standing.ODD if len(numbers) >= LEAST_FOR_ODD else Standing.DIFFERS
    low, high = min(numbers), max(numbers)
    near = high <= low * (1 + MOST_OFF)

    def judge(value: str | float) -> Standing:
        if near or abs(float(value) - middle) <= MOST_OFF * middle:
            return Standing.ALIKE
        return off

    return judge, _text(middle, trait.unit)


def _text(value: str | float, unit: str) -> str:
    return f"{float(value):.3g} {unit}" if unit else str(value)


def _word(fact: Fact[Any]) -> Callable[[Facts], str | None]:
    def of(facts: Facts) -> str | None:
        value = facts.value(fact)
        return None if value is None else called(value)

    return of


def _counted(words: Iterable[str]) -> str | None:
    """ "8 × NVIDIA H200"; each kind once, in the order of the alphabet."""
    counts = Counter(words)
    return ", ".join(f"{count} × {word}" for word, count in sorted(counts.items())) or None


def _gpus(facts: Facts) -> str | None:
    return _counted("lost" if gpu.lost else gpu.name or "without a name" for gpu in facts.value(GPUS) or ())


def _pcie(facts: Facts) -> str | None:
    """Lanes and the highest generation; the present one is lowered while a GPU rests."""
    links = [(gpu.pcie_gen_max, gpu.pcie_width) for gpu in facts.value(GPUS) or ()]
    return _counted(f"Gen{gen} x{width}" for gen, width in links if gen and width)


def _codes(fact: Fact[P2pMatrix]) -> Callable[[Facts], str | None]:
    def of(facts: Facts) -> str | None:
        matrix = facts.value(fact)
        return _counted(str(code) for code in matrix.pairs().values()) if matrix else None

    return of


def _links(facts: Facts) -> str | None:
    matrix = facts.value(TOPOLOGY)
    return _counted(matrix.gpu_links().values()) if matrix else None


def _nodes(facts: Facts) -> str | None:
    nodes = facts.value(NUMA_NODES)
    return None if nodes is None else str(len(nodes))


def _copy_us(size_bytes: int) -> Callable[[Facts], float | None]:
    """The median over the pairs that were measured, as the device timed it; of one size, which both
    machines have or it is not compared."""

    def of(facts: Facts) -> float | None:
        result = facts.value(COPY)
        times = [
            row.time_us
            for row in (result.rows if result else ())
            if (row.path, row.timing, row.size_bytes) == (CopyPath.PEER, Timing.DEVICE, size_bytes)
        ]
        return median(times) if times else None

    return of


def _all_reduce_us(facts: Facts) -> float | None:
    result = facts.value(ALLREDUCE)
    times = [row.time_us for row in (result.rows if result else ()) if row.size_bytes == SMALL]
    return min(times, default=None)


_TRAITS: tuple[_Trait, ...] = (
    _Trait("GPUs", GPUS, _gpus),
    _Trait("NVIDIA driver", DRIVER_VERSION, _word(DRIVER_VERSION)),
    _Trait("CUDA", CUDA_VERSION, _word(CUDA_VERSION)),
    _Trait("NCCL", NCCL_VERSION, _word(NCCL_VERSION)),
    _Trait("Virtualisation", VIRT_KIND, _word(VIRT_KIND)),
    _Trait("Emulated board", MACHINE_TYPE, _word(MACHINE_TYPE)),
    _Trait("Processor", CPU_MODEL, _word(CPU_MODEL)),
    _Trait("NUMA nodes", NUMA_NODES, _nodes),
    _Trait("Topology of pairs", TOPOLOGY, _links),
    _Trait("PCIe links", GPUS, _pcie),
    _Trait("Peer reads of pairs", P2P_READ, _codes(P2P_READ)),
    _Trait("Peer writes of pairs", P2P_WRITE, _codes(P2P_WRITE)),
    _Trait("Copy of 12 KiB between GPUs", COPY, _copy_us(SMALL), "µs"),
    _Trait("Copy of 16 MiB between GPUs", COPY, _copy_us(LARGE), "µs"),
    _Trait("All-reduce of 12 KiB", ALLREDUCE, _all_reduce_us, "µs"),
)
