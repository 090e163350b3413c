"""Measurements: copies, collectives, serving benchmarks, profiles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agents.facts.fact import Fact


class Timing(StrEnum):
    """device: the GPU's own time in a queue or graph. host_sync: one call with a synchronise, which
    reads 14 to 17 µs even inside one GPU. unknown: the output does not say; treated as host_sync."""

    DEVICE = "device"
    HOST_SYNC = "host_sync"
    UNKNOWN = "unknown"


class CopyPath(StrEnum):
    """same: inside one GPU. peer: GPU to GPU by the runtime's copy. peer_both_ways: one copy in each direction at
    once. staged: by the program through host memory. synchronise, launch: controls that copy nothing."""

    SAME = "same"
    PEER = "peer"
    PEER_BOTH_WAYS = "peer_both_ways"
    STAGED = "staged"
    HOST_TO_DEVICE = "host_to_device"
    DEVICE_TO_HOST = "device_to_host"
    SYNCHRONISE = "synchronise"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStats:
    """The spread of the samples behind a median time. None: the program did not print it.

    ci_*: the 95 % bootstrap interval of the median. cv: standard deviation ÷ mean. outliers: samples beyond
    Tukey's outer fences, three interquartile ranges outside the quartiles; they stay in every figure.
    unstable: the samples spread or drift too far to compare.
    """

    p95_us: float | None = None
    p99_us: float | None = None
    ci_low_us: float | None = None
    ci_high_us: float | None = None
    cv: float | None = None
    samples: int | None = None
    outliers: int | None = None
    unstable: bool | None = None


@dataclass(frozen=True, slots=True)
class CopyRow(SampleStats):
    """One size on one path. time_us: the median.

    gb_per_s: 10⁹ bytes a second, as printed where it was printed. source/destination: "0", "cpu", "?" where
    the output does not say. method: how the device was timed ("graph", "queued"), or the host ("call"). For
    copies both ways size_bytes counts one copy, gb_per_s counts both.
    """

    path: CopyPath
    source: str
    destination: str
    size_bytes: int
    time_us: float
    timing: Timing = Timing.UNKNOWN
    gb_per_s: float | None = None
    peer_access: bool | None = None
    line: int = 0
    method: str = ""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A printed row whose own arithmetic does not hold within 5 % in any unit; left out of the curve."""

    line: int
    text: str
    computed_gb_per_s: float
    printed_gb_per_s: float


@dataclass(frozen=True, slots=True)
class CopyResult:
    """environment: what the figures depend on (driver, torch, GPU names, device "cpu" or "cuda")."""

    rows: tuple[CopyRow, ...]
    rejected: tuple[RejectedRow, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Pattern(StrEnum):
    """Which GPUs copy at once. alone, from_host, to_host: one copy, the reference for the other patterns.
    many_to_one, one_to_many: between the first GPU and every other."""

    ALONE = "alone"
    ALL_TO_ALL = "all_to_all"
    MANY_TO_ONE = "many_to_one"
    ONE_TO_MANY = "one_to_many"
    FROM_HOST = "from_host"
    TO_HOST = "to_host"
    ALL_FROM_HOST = "all_from_host"
    ALL_TO_HOST = "all_to_host"


@dataclass(frozen=True, slots=True)
class ContentionRow(SampleStats):
    """Copies of one size that start together. time_us: device time until each of the `flows` has done one
    copy, median; alone_us: the same for one copy alone in this process, None when that was not measured.

    gb_per_s: what all flows move, 10⁹ bytes a second. peer_access: None for copies with the host.
    """

    pattern: Pattern
    flows: int
    size_bytes: int
    time_us: float
    gb_per_s: float
    alone_us: float | None = None
    peer_access: bool | None = None
    line: int = 0

    @property
    def slowdown(self) -> float | None:
        """The time of a copy divided by its time alone; None without that figure."""
        return self.time_us / self.alone_us if self.alone_us else None


@dataclass(frozen=True, slots=True)
class ContentionResult:
    rows: tuple[ContentionRow, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def slowest(self) -> ContentionRow | None:
        """The row of several copies with the largest slowdown; unstable rows do not count. None where no such row has
        a slowdown."""
        rows = [row for row in self.rows if row.flows > 1 and row.slowdown and not row.unstable]
        return max(rows, key=lambda row: row.slowdown or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class AllReduceRow(SampleStats):
    """One size. graph: timed inside a CUDA graph; timing and method say how else ("queued", "call")."""

    size_bytes: int
    time_us: float
    ranks: int
    in_place: bool = False
    wrong: int | None = None
    graph: bool | None = None
    timing: Timing | None = None
    method: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class AllReduceResult:
    """p2p: whether peer-to-peer was on; None: unknown."""

    rows: tuple[AllReduceRow, ...]
    p2p: bool | None = None
    timing: Timing = Timing.UNKNOWN
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """pairs: whether the bytes arrived, by sender and receiver ("0->1")."""

    pairs: Mapping[str, bool]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """A printed matrix between GPUs, e.g. of p2pBandwidthLatencyTest.

    unit: "GB/s", "us", or "access" (1: the runtime can reach the peer, 0: it cannot).
    """

    title: str
    unit: str
    gpus: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    p2p: bool | None = None


@dataclass(frozen=True, slots=True)
class ServingRow:
    """One operating point. Throughputs are over all its requests together, in tokens a second; total also counts
    input tokens. time_per_output_token_ms, ttft_ms and itl_ms are medians where the tool gives them.

    ttft: time to the first text. itl: time between two events of a stream; tokens_per_event: mean tokens in an event.
    errors: requests without a whole answer. power_w: of all GPUs of the machine.
    """

    concurrency: int | None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    time_per_output_token_ms: float | None = None
    requests: int | None = None
    tpot_p95_ms: float | None = None
    tpot_p99_ms: float | None = None
    ttft_ms: float | None = None
    ttft_p95_ms: float | None = None
    ttft_p99_ms: float | None = None
    itl_ms: float | None = None
    itl_p95_ms: float | None = None
    itl_p99_ms: float | None = None
    tokens_per_event: float | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    errors: int | None = None
    power_w: float | None = None
    tokens_per_joule: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Milliseconds of one decode step by kind of kernel; the five add up to the step."""

    nccl_ms: float
    attention_ms: float
    moe_ms: float
    other_ms: float
    gaps_ms: float

    @property
    def kernels_ms(self) -> float:
        """Time in kernels that are not collectives."""
        return self.attention_ms + self.moe_ms + self.other_ms

    @property
    def step_ms(self) -> float:
        return self.kernels_ms + self.nccl_ms + self.gaps_ms

    def share(self, part_ms: float) -> float:
        """0…1 of the step; 0 for an empty profile."""
        return part_ms / self.step_ms if self.step_ms else 0.0


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Milliseconds of GPU time by kind of kernel over a whole recording, summed over its GPUs.

    It shows neither steps nor gaps. kernels: the number of launches.
    """

    nccl_ms: float
    attention_ms: float
    moe_ms: float
    other_ms: float
    kernels: int


@dataclass(frozen=True, slots=True)
class GpuTelemetry:
    """Medians of one GPU's samples; None: no such column, or N/A.

    busy_percent: share of the time in which any kernel ran. sm_active_percent, tensor_percent and dram_percent are
    DCGM's profiling figures: how much of the chip worked. *_gb_per_s: 10⁹ bytes a second. pcie_gen and pcie_width:
    the highest values, because an idle link slows down by itself. throttle_reasons: what slowed the clocks in any
    sample; throttled_percent: the share of such samples. every_s: time between two samples. temperature_celsius: the
    highest sample, where our own program measured.
    """

    gpu: str
    samples: int
    power_w: float | None = None
    power_max_w: float | None = None
    busy_percent: float | None = None
    memory_busy_percent: float | None = None
    sm_active_percent: float | None = None
    tensor_percent: float | None = None
    dram_percent: float | None = None
    pcie_rx_gb_per_s: float | None = None
    pcie_tx_gb_per_s: float | None = None
    nvlink_rx_gb_per_s: float | None = None
    nvlink_tx_gb_per_s: float | None = None
    memory_used_mib: float | None = None
    sm_clock_mhz: int | None = None
    temperature_celsius: int | None = None
    memory_clock_mhz: int | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    throttled_percent: float | None = None
    every_s: float | None = None


COPY: Fact[CopyResult] = Fact("bench.copy", "Copy benchmark", CopyResult)
ALLREDUCE: Fact[AllReduceResult] = Fact("bench.allreduce", "All-reduce benchmark", AllReduceResult)
CONTENTION: Fact[ContentionResult] = Fact("bench.contention", "Copies beside other copies", ContentionResult)
DELIVERY: Fact[DeliveryResult] = Fact("bench.delivery", "Bytes checked on the destination, by pair", DeliveryResult)
PAIR_MATRICES: Fact[tuple[PairMatrix, ...]] = Fact(
    "bench.pairs", "Matrices of a bandwidth tool", tuple[PairMatrix, ...]
)
SERVING: Fact[tuple[ServingRow, ...]] = Fact("bench.serving", "Serving benchmark", tuple[ServingRow, ...])
PROFILE: Fact[Profile] = Fact("bench.profile", "Engine profile of a step", Profile)
KERNEL_TIMES: Fact[KernelTimes] = Fact("bench.kernel_times", "GPU time by kind of kernel in a recording", KernelTimes)
TELEMETRY: Fact[tuple[GpuTelemetry, ...]] = Fact("bench.telemetry", "Telemetry of each GPU", tuple[GpuTelemetry, ...])
