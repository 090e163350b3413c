"""The parts of a decode step on one GPU: memory reads, launches, small matrix products."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agents.facts.bench import SampleStats, Timing
from agents.facts.fact import Fact

BEYOND_L2 = 4  # a buffer of so many times the L2 is served by memory


@dataclass(frozen=True, slots=True)
class Figures(SampleStats):
    """time_us: the median. method: "queued" and "graph" (device), "call" (a caller who waits), "no_wait" (the
    host's time to queue one)."""

    time_us: float
    timing: Timing
    method: str = ""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One streaming kernel. kernel: read, copy, triad. size_bytes: of one buffer. moved_bytes: all bytes read and
    written. gb_per_s: 10⁹ moved bytes a second."""

    gpu: str
    kernel: str
    size_bytes: int
    moved_bytes: int
    l2_bytes: int
    gb_per_s: float
    figures: Figures
    line: int = 0

    @property
    def beyond_l2(self) -> bool:
        return self.size_bytes >= BEYOND_L2 * self.l2_bytes > 0


@dataclass(frozen=True, slots=True)
class MemoryResult:
    rows: tuple[MemoryRow, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


class Work(StrEnum):
    """synchronise: a wait with nothing to wait for. kernel: an empty kernel. operation: torch adds to one number.
    graph: a CUDA graph of `kernels` empty ones. gemm, grouped_gemm: products of few tokens with a layer's weights,
    and with those of `experts`."""

    SYNCHRONISE = "synchronise"
    KERNEL = "kernel"
    OPERATION = "operation"
    GRAPH = "graph"
    GEMM = "gemm"
    GROUPED_GEMM = "grouped_gemm"


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """weight_bytes: the bytes of weights that one product reads. beyond_l2: the weights come from memory, not from
    the cache; None: the work is no product."""

    what: Work
    gpu: str
    figures: Figures
    batch: int | None = None
    hidden: int | None = None
    intermediate: int | None = None
    dtype: str = ""
    experts: int | None = None
    kernels: int | None = None
    weight_bytes: int | None = None
    beyond_l2: bool | None = None
    gb_per_s: float | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class LaunchResult:
    rows: tuple[LaunchRow, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def figures(self, what: Work, method: str) -> Figures | None:
        """The figures of that work on the first GPU, timed by that method."""
        of_work = (row.figures for row in self.rows if row.what is what)
        return next((figures for figures in of_work if figures.method == method), None)

    def time_us(self, what: Work, method: str) -> float | None:
        """The median of those figures."""
        figures = self.figures(what, method)
        return figures.time_us if figures else None


MEMORY: Fact[MemoryResult] = Fact("bench.memory", "Memory bandwidth reached", MemoryResult)
LAUNCH: Fact[LaunchResult] = Fact("bench.launch", "Launches and small products", LaunchResult)
