"""What healthy cards, links and boards reach, as ranges with their sources.

Measured on public machines or on those of machines.py. What nobody has published for a kind of machine has
no range here: "no baseline known" is an answer. All sources were read in November 2026.
"""

from dataclasses import dataclass

from webapp.diagnosis.reference.curves import P2P_GEN5_X16_RANGE, STAGED_GEN5_X16_RANGE, Range, link_share
from webapp.diagnosis.reference.gpus import gpu_spec
from webapp.diagnosis.reference.machines import H200_PAIR

GIGABYTES, MICROSECONDS = "GB/s", "µs"
OURS = H200_PAIR.source


@dataclass(frozen=True, slots=True)
class Expectation:
    """low, high: what a healthy machine of this kind reaches, in `unit`. source: whose figures, and when."""

    low: float
    high: float
    unit: str
    source: str


# Share of the datasheet's peak. CUDA's bandwidthTest copies at 0.74 (A100) and 0.75 (T4) of it
# (github.com/router-gao/cuda-demo); streaming reads of RTX PRO 6000 give about 0.89 (rtx6kpro, 2026).
# More than the peak cannot come from memory.
MEMORY_SHARE: Range = (0.74, 1.0)
# A card is as good as one that was measured down to 5 % below it, the margin of all our comparisons.
MARGIN = 0.05

# NVIDIA's nvbandwidth post shows 55.6 GB/s from the host (developer.nvidia.com/blog, "nvbandwidth");
# the H200s gave 54.9. The raw rate of Gen5 x16 is 63.
HOST_GEN5_X16: Range = (50.0, 58.0)

# The H200s: 35.0 to 37.0 GB/s from 16 MiB on, and 12.6 to 21.5 µs at 12 KiB.
STAGED_SMALL_US: Range = (12.0, 21.5)
STAGED_LOW_GB_PER_S = 34.5

# Over 18 links, each 25 GB/s one way by NVIDIA's datasheet: 362 to 388 GB/s from 16 MiB on the H200s, and
# nvbandwidth of H100 389 GB/s (Together AI, "Testing and running large GPU clusters", 2024).
NVLINK4_EACH: Range = (19.0, 25.0)
NVLINK4_CARDS = frozenset({"H100 SXM", "H200 SXM", "H20"})
NVLINK_SMALL_US: Range = (2.3, 3.6)

# All-reduces of 4 to 64 KiB in a CUDA graph.
PAIR_H200_P2P_US: Range = (6.5, 8.5)
PAIR_H200_SHM_US: Range = (12.0, 16.0)
FOUR_PCIE_P2P_US: Range = (13.0, 15.0)
EIGHT_PCIE_P2P_US: Range = (24.0, 57.0)
TOGETHER = "nvbandwidth of H100, Together AI, 2024"
RTX6K = "rtx6kpro community measurements of RTX PRO 6000, 2026"


def memory_rate(gpu: str | None) -> Expectation | None:
    """Memory bandwidth of one GPU, by the driver's name for the GPU."""
    spec = gpu_spec(gpu)
    if spec is None:
        return None
    low, high = (share * spec.bandwidth_gb_per_s for share in MEMORY_SHARE)
    source = f"0.74 to 1.0 of {spec.bandwidth_gb_per_s:.0f} GB/s ({spec.source})"
    if spec.name == H200_PAIR.gpu:
        least, most = H200_PAIR.memory_gb_per_s
        low = float(round((1 - MARGIN) * least))
        source = f"{least:.0f} to {most:.0f} GB/s {OURS}; at most {high:.0f} ({spec.source})"
    return Expectation(low, high, GIGABYTES, source)


def host_rate(gen: int | None, width: int | None) -> Expectation | None:
    """Large copies between pinned memory of the host and a GPU."""
    source = f"nvbandwidth, NVIDIA developer blog, read 2026-11; {OURS}"
    return _of_link(HOST_GEN5_X16, gen, width, source)


def staged_rate(gen: int | None, width: int | None) -> Expectation | None:
    """Large copies between GPUs without peer access."""
    source = f"public P2P-off copies of RTX PRO 6000 (Menlo Research, 2025-12); {OURS}"
    return _of_link((STAGED_LOW_GB_PER_S, STAGED_GEN5_X16_RANGE[1]), gen, width, source)


def peer_rate_pcie(gen: int | None, width: int | None) -> Expectation | None:
    """Large copies between GPUs with peer access over PCIe."""
    return _of_link(P2P_GEN5_X16_RANGE, gen, width, RTX6K)


def peer_rate_nvlink(gpu: str | None, links: int) -> Expectation | None:
    """Copies of 16 MiB and more over that many NVLinks."""
    spec = gpu_spec(gpu)
    if spec is None or spec.name not in NVLINK4_CARDS or links < 1:
        return None
    low, high = (links * each for each in NVLINK4_EACH)
    return Expectation(low, high, GIGABYTES, f"{links} NVLinks of 19 to 25 GB/s each: {TOGETHER}; {OURS}")


def small_copy(gpu: str | None, *, access: bool, nvlink: bool) -> Expectation | None:
    """Device time of a copy of 4 to 16 KiB between GPUs."""
    if not access:
        source = f"{OURS}; 13 to 14 µs on RTX PRO 6000 (Menlo Research, 2025-12)"
        return Expectation(*STAGED_SMALL_US, MICROSECONDS, source)
    return Expectation(*NVLINK_SMALL_US, MICROSECONDS, OURS) if nvlink and _is_card(gpu, "H200 SXM") else None


def small_all_reduce(gpu: str | None, ranks: int, *, p2p: bool, nvlink: bool) -> Expectation | None:
    """4 to 64 KiB, inside a CUDA graph."""
    if nvlink and ranks == 2 and _is_card(gpu, "H200 SXM"):
        span = PAIR_H200_P2P_US if p2p else PAIR_H200_SHM_US
        return Expectation(*span, MICROSECONDS, OURS)
    published = {4: FOUR_PCIE_P2P_US, 8: EIGHT_PCIE_P2P_US}.get(ranks)
    if p2p and not nvlink and published and "PRO 6000" in (gpu or ""):
        return Expectation(*published, MICROSECONDS, RTX6K)
    return None


def _of_link(gen5_x16: Range, gen: int | None, width: int | None, source: str) -> Expectation | None:
    if not gen or not width:
        return None
    share = link_share(gen, width)
    scaled = "" if share == 1 else f", scaled from Gen5 x16 to Gen{gen} x{width}"
    low, high = (share * rate for rate in gen5_x16)
    return Expectation(low, high, GIGABYTES, source + scaled)


def _is_card(gpu: str | None, card: str) -> bool:
    spec = gpu_spec(gpu)
    return spec is not None and spec.name == card
