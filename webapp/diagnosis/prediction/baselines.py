"""Each measured figure beside what a healthy machine of this kind reaches."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from agents.facts import ReadingKind
from agents.facts.bench import ALLREDUCE, COPY, AllReduceRow, CopyPath, CopyRow, Timing
from agents.facts.gpu import GPUS, Gpu
from agents.facts.kernels import MEMORY, MemoryRow
from agents.facts.p2p import TOPOLOGY
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.reference import expectations as reference
from webapp.diagnosis.reference.expectations import GIGABYTES, MICROSECONDS, Expectation
from webapp.diagnosis.situation.copy_curve import PLATEAU_BYTES
from webapp.diagnosis.situation.own_machine import cards_measured, foreign_cards

SMALL_COPY_BYTES = (4 * 2**10, 16 * 2**10)
SMALL_SUM_BYTES = (4 * 2**10, 64 * 2**10)
_NVLINKS = re.compile(r"NV(\d{1,3})")


class Standing(StrEnum):
    """below, above: the whole 95 % interval is outside the range, where there is an interval. Below is a
    lower figure, so with µs it is the faster one. unstable: the samples spread too far to say."""

    WITHIN = "within"
    BELOW = "below"
    ABOVE = "above"
    NO_BASELINE = "no baseline known"
    UNSTABLE = "unstable"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, device-timed. low, high: its 95 % interval, the figure itself where none was
    given. expectation None: no baseline is known."""

    title: str
    value: float
    unit: str
    low: float
    high: float
    unstable: bool
    expectation: Expectation | None
    evidence: tuple[EvidenceRef, ...]

    @property
    def standing(self) -> Standing:
        if self.expectation is None:
            return Standing.NO_BASELINE
        if self.unstable:
            return Standing.UNSTABLE
        if self.high < self.expectation.low:
            return Standing.BELOW
        return Standing.ABOVE if self.low > self.expectation.high else Standing.WITHIN

    @property
    def worse(self) -> bool:
        """Slower than a healthy machine."""
        bad = Standing.BELOW if self.unit == GIGABYTES else Standing.ABOVE
        return self.standing is bad


def figures(facts: Facts) -> tuple[Figure, ...]:
    """Of the newest measurements: memory, copies with the host and between GPUs, small all-reduces."""
    machine = _Machine(facts)
    return (*_memory(facts, machine), *_copies(facts, machine), *_sums(facts, machine))


class _Machine:
    """What the expectations depend on. Link gen and width are what the GPU and slot can do: an idle link
    shows less. Figures of other cards than the guest's are judged by what their own headers say."""

    def __init__(self, facts: Facts) -> None:
        best = (facts.best(fact) for fact in (MEMORY, COPY, ALLREDUCE))
        here = not any(foreign_cards(facts, item) for item in best if item)
        listed = facts.value(GPUS) if here else None
        topology = facts.value(TOPOLOGY) if here else None
        self.gpus: dict[str, Gpu] = {str(gpu.index): gpu for gpu in listed or ()}
        self.links = topology.gpu_links() if topology else {}
        self.names = {gpu.name for gpu in self.gpus.values()} or _names_measured(facts)

    def name(self, gpu: str) -> str | None:
        known_gpu = self.gpus.get(gpu)
        return known_gpu.name if known_gpu else None

    @property
    def any_name(self) -> str | None:
        """The one name that all GPUs have."""
        return next(iter(self.names)) if len(self.names) == 1 else None

    def link(self, *gpus: str) -> tuple[int | None, int | None]:
        """Generation and width of the slowest of these GPUs' links; None: not read."""
        known_gpus = [self.gpus[gpu] for gpu in gpus if gpu in self.gpus]
        gens = [gpu.pcie_gen_max for gpu in known_gpus if gpu.pcie_gen_max]
        widths = [gpu.pcie_width_max for gpu in known_gpus if gpu.pcie_width_max]
        whole = len(gens) == len(widths) == len(gpus)
        return (min(gens), min(widths)) if whole and gpus else (None, None)

    def nvlinks(self, a: str, b: str) -> int | None:
        """How many between two GPUs, 0 over PCIe; None: the topology was not read."""
        link = self.links.get((f"GPU{a}", f"GPU{b}"))
        if link is None:
            return None
        match = _NVLINKS.fullmatch(link)
        return int(match[1]) if match else 0

    @property
    def all_nvlink(self) -> bool | None:
        if not self.links:
            return None
        return all(_NVLINKS.fullmatch(link) for link in self.links.values())


def _names_measured(facts: Facts) -> set[str | None]:
    """As the programs that measured wrote them into their headers."""
    best = (facts.best(fact) for fact in (MEMORY, COPY, ALLREDUCE))
    return {name for item in best if item for name in cards_measured(item)}


def _memory(facts: Facts, machine: _Machine) -> Iterator[Figure]:
    """The fastest kernel of each GPU."""
    best: dict[str, MemoryRow] = {}
    result = facts.value(MEMORY)
    for row in result.rows if result else ():
        if row.beyond_l2 and row.figures.timing is Timing.DEVICE:
            best[row.gpu] = max(best.get(row.gpu, row), row, key=lambda r: r.gb_per_s)
    for gpu, row in sorted(best.items()):
        times = (row.figures.time_us, row.figures.ci_low_us, row.figures.ci_high_us)
        expectation = reference.memory_rate(machine.name(gpu) or machine.any_name)
        title = f"Memory of GPU {gpu} ({row.kernel})"
        refs = _at(facts.best(MEMORY), row.line)
        yield _rate(title, row.moved_bytes, times, bool(row.figures.unstable), expectation, refs)


def _copies(facts: Facts, machine: _Machine) -> Iterator[Figure]:
    result = facts.value(COPY)
    rows = [row for row in (result.rows if result else ()) if row.timing is Timing.DEVICE]
    best = facts.best(COPY)
    for row in _largest(rows, lambda r: r.size_bytes >= PLATEAU_BYTES):
        title, expectation = _large_copy(row, machine)
        if title:
            times = (row.time_us, row.ci_low_us, row.ci_high_us)
            yield _rate(title, row.size_bytes, times, bool(row.unstable), expectation, _at(best, row.line))
    small = (r for r in rows if r.path is CopyPath.PEER and r.peer_access is not None)
    for row in _largest(small, lambda r: _in(r.size_bytes, SMALL_COPY_BYTES)):
        access, nvlinks = bool(row.peer_access), machine.nvlinks(row.source, row.destination)
        name = machine.name(row.source) or machine.any_name
        known = nvlinks is not None or not access
        expectation = reference.small_copy(name, access=access, nvlink=bool(nvlinks)) if known else None
        title = f"Small copy, {_pair(row)}"
        yield _time(title, row.time_us, row.ci_low_us, row.ci_high_us, row.unstable, expectation, _at(best, row.line))


def _large_copy(row: CopyRow, machine: _Machine) -> tuple[str, Expectation | None]:
    if row.path is CopyPath.HOST_TO_DEVICE:
        return f"Host to GPU {row.destination}", reference.host_rate(*machine.link(row.destination))
    if row.path is CopyPath.DEVICE_TO_HOST:
        return f"GPU {row.source} to host", reference.host_rate(*machine.link(row.source))
    if row.path is not CopyPath.PEER or row.peer_access is None:
        return "", None
    title, link = f"Large copy, {_pair(row)}", machine.link(row.source, row.destination)
    if not row.peer_access:
        return title, reference.staged_rate(*link)
    nvlinks = machine.nvlinks(row.source, row.destination)
    if nvlinks is None:
        return title, None
    if nvlinks:
        name = machine.name(row.source) or machine.any_name
        return title, reference.peer_rate_nvlink(name, nvlinks)
    return title, reference.peer_rate_pcie(*link)


def _sums(facts: Facts, machine: _Machine) -> Iterator[Figure]:
    """The largest of the small sizes of each arm, where it was timed inside a CUDA graph."""
    for item in facts.all(ALLREDUCE):
        result = item.reading.value
        if item.reading.kind is not ReadingKind.KNOWN or result is None or result.p2p is None:
            continue
        if item.epoch != facts.newest_epoch:
            continue
        small = [r for r in result.rows if r.graph and _in(r.size_bytes, SMALL_SUM_BYTES)]
        row: AllReduceRow | None = min(small, key=lambda r: abs(r.size_bytes - 12288), default=None)
        if row is None:
            continue
        nvlink = machine.all_nvlink
        expectation = (
            None
            if nvlink is None
            else reference.small_all_reduce(machine.any_name, row.ranks, p2p=result.p2p, nvlink=nvlink)
        )
        how = "with P2P" if result.p2p else "without P2P"
        title = f"Small all-reduce over {row.ranks}, {how}"
        yield _time(title, row.time_us, row.ci_low_us, row.ci_high_us, row.unstable, expectation, _at(item, row.line))


def _largest(rows: Iterable[CopyRow], fits: Callable[[CopyRow], bool]) -> list[CopyRow]:
    """The largest size that fits on each way between two ends."""
    largest: dict[tuple[object, ...], CopyRow] = {}
    for row in rows:
        key = (row.path, row.source, row.destination, row.peer_access)
        if fits(row) and row.size_bytes > 0:
            largest[key] = max(largest.get(key, row), row, key=lambda r: r.size_bytes)
    return list(largest.values())


def _in(size_bytes: int, limits: tuple[int, int]) -> bool:
    return limits[0] <= size_bytes <= limits[1]


def _pair(row: CopyRow) -> str:
    access = "on" if row.peer_access else "off"
    return f"GPU {row.source} to {row.destination}, peer access {access}"


def _at(item: Sourced | None, line: int) -> tuple[EvidenceRef, ...]:
    return (EvidenceRef(item.source, line or 1),) if item else ()


def _time(
    title: str,
    time_us: float,
    low_us: float | None,
    high_us: float | None,
    unstable: bool | None,
    expectation: Expectation | None,
    refs: tuple[EvidenceRef, ...],
) -> Figure:
    low, high = low_us or time_us, high_us or time_us
    return Figure(title, time_us, MICROSECONDS, low, high, bool(unstable), expectation, refs)


def _rate(
    title: str,
    moved_bytes: int,
    times_us: tuple[float, float | None, float | None],
    unstable: bool,
    expectation: Expectation | None,
    refs: tuple[EvidenceRef, ...],
) -> Figure:
    middle, shortest, longest = times_us
    value, low, high = (moved_bytes / us / 1e3 for us in (middle, longest or middle, shortest or middle))
    return Figure(title, value, GIGABYTES, low, high, unstable, expectation, refs)
