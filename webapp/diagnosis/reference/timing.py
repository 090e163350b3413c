"""Why a figure says how it was timed: the same work on two H200, timed in different ways.

Medians of 12 KiB in µs. Copies: agents/payloads/copy, of which the raw lines are among the tests
(tests/agents/payloads/two_h200.jsonl); all-reduces inside a graph: machines.py. The eager all-reduces are
torch.distributed's on the same machine, by NCCL's own settings, measured earlier in 2026.
"""

from dataclasses import dataclass

from webapp.diagnosis.reference.curves import Range
from webapp.diagnosis.reference.machines import H200_PAIR


@dataclass(frozen=True, slots=True)
class TimedTwice:
    """device_us: the GPU's own time. host_us: what a program that waits for each call sees. None: there is
    no such figure."""

    what: str
    device_us: Range | None
    host_us: Range | None


SIZE_BYTES = 12288
COPIES: tuple[TimedTwice, ...] = (
    TimedTwice("waiting for nothing (the control)", None, (2.9, 2.9)),
    TimedTwice("a copy inside one GPU (the control)", (0.96, 0.99), (13.6, 13.6)),
    TimedTwice("a copy to the other GPU, with peer access", (2.5, 2.5), (10.4, 10.4)),
    TimedTwice("a copy to the other GPU, without", (12.6, 21.4), (19.0, 19.0)),
)


@dataclass(frozen=True, slots=True)
class WithAndWithout:
    """One all-reduce, over P2P and over shared memory."""

    how: str
    p2p_us: Range
    without_us: Range


ALL_REDUCES: tuple[WithAndWithout, ...] = (
    WithAndWithout("torch, one call after the other", (40.8, 40.8), (39.8, 43.2)),
    WithAndWithout("torch, inside a CUDA graph", (11.6, 11.6), (18.4, 18.6)),
    WithAndWithout(
        "NCCL itself, inside a CUDA graph", H200_PAIR.sums_p2p_us[SIZE_BYTES], H200_PAIR.sums_shm_us[SIZE_BYTES]
    ),
)
