"""Published timings of copies and collectives, and NCCL's own cost model.

Sources are named at each value; all were read in November 2026.
"""

Range = tuple[float, float]

# Copies between two GPUs without peer access go through host memory. On PCIe Gen5 x16 public
# p2pBandwidthLatencyTest runs with P2P disabled on RTX PRO 6000 Blackwell read 38 to 45 GB/s for large
# blocks (Menlo Research, December 2025; rtx6kpro community measurements, 2026).
STAGED_GEN5_X16_GB_PER_S = 41.0
STAGED_GEN5_X16_RANGE: Range = (38.0, 45.0)
STAGED_SOURCE = "public P2P-off copies on PCIe Gen5 x16, 38 to 45 GB/s: Menlo Research, 2025-12"

# The same board with peer access: 50 to 56 GB/s, 0.36 to 0.45 µs (rtx6kpro, direct-attached Turin).
P2P_GEN5_X16_RANGE: Range = (50.0, 56.0)

# All-reduce over eight GPUs with P2P on PCIe, up to 64 KiB: switch boards 24 to 27 µs, ESC8000 27 to
# 57 µs, dual Turin 26 to 48 µs (rtx6kpro measurements of RTX PRO 6000, 2026).
P2P_ALL_REDUCE_8_US: Range = (24.0, 57.0)
P2P_ALL_REDUCE_SOURCE = "published 8-GPU P2P all-reduces, 24 to 57 µs (rtx6kpro, 2026)"

# NCCL's tuning constants in µs: base and per PCIe hop of its ring, and the share of the link's
# bandwidth that carries data (NCCL 2.30.7, src/graph/tuning.cc). LL sends a flag with every word.
NCCL_PROTOCOLS: dict[str, tuple[float, float, float]] = {
    "LL": (6.6, 1.0, 0.5),
    "LL128": (14.0, 2.5, 0.92),
    "Simple": (8.4, 5.7, 1.0),
}


def link_share(gen: int | None, width: int | None) -> float:
    """A link's rate as a share of Gen5 x16; each generation doubles the one before it."""
    return float(2 ** ((gen or 5) - 5) * (width or 16) / 16)


def staged_gb_per_s(gen: int | None, width: int | None) -> float:
    return STAGED_GEN5_X16_GB_PER_S * link_share(gen, width)


def ring_steps(ranks: int) -> int:
    """Dependent steps of a ring all-reduce; NCCL's tree within one node is a chain of as many."""
    return 2 * (ranks - 1)


def ring_volume(ranks: int) -> float:
    """Bytes each rank sends, as a multiple of the message (nccl-tests, PERFORMANCE.md)."""
    return 2 * (ranks - 1) / ranks


def nccl_model_us(size_bytes: float, ranks: int, gb_per_s: float) -> float:
    """The cheapest protocol by NCCL's own model."""
    wire_us = ring_volume(ranks) * size_bytes / (gb_per_s * 1e3)
    return min(base + ring_steps(ranks) * hop + wire_us / share for base, hop, share in NCCL_PROTOCOLS.values())


def p2p_all_reduce_us(size_bytes: float, ranks: int, share: float = 1.0) -> Range:
    """A published all-reduce with P2P, scaled by ring steps from eight GPUs, plus the wire time."""
    steps = ring_steps(ranks) / ring_steps(8)
    slow, fast = (bandwidth * share for bandwidth in P2P_GEN5_X16_RANGE)
    volume_kb = ring_volume(ranks) * size_bytes / 1e3
    low, high = P2P_ALL_REDUCE_8_US
    return steps * low + volume_kb / fast, steps * high + volume_kb / slow
