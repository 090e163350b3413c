"""Machines that were measured with Peerpath: what they are, when it was, and what they gave.

The raw outputs of two H200 are among the tests (tests/agents/payloads/two_h200*.jsonl), which hold these
figures to them. Other machines' figures are published ones and stand in expectations.py and curves.py.
"""

from dataclasses import dataclass

from webapp.diagnosis.reference.curves import Range


@dataclass(frozen=True, slots=True)
class MeasuredMachine:
    """Ranges are the lowest and the highest median among its GPUs, directions and repeats, device-timed.

    memory_gb_per_s: over kernels that read, copy and combine. *_gb_per_s of copies: 16 and 64 MiB; small:
    12 KiB. over_host: between GPUs without peer access; its small copies have two modes. all_together: how
    many times as long 16 MiB take when every GPU sends to every other, over NVLink and over the host.
    sums_us: all-reduces over both in a CUDA graph by bytes, with P2P and without (SHM), four repeats each.
    """

    name: str
    gpu: str
    driver: str
    torch: str
    nccl: str
    date: str
    memory_gb_per_s: Range
    with_host_gb_per_s: Range
    over_host_gb_per_s: Range
    peer_gb_per_s: Range
    over_host_small_us: Range
    peer_small_us: Range
    all_together: tuple[float, float]
    sums_p2p_us: dict[int, Range]
    sums_shm_us: dict[int, Range]

    @property
    def source(self) -> str:
        return f"measured on {self.name}, driver {self.driver}, {self.date}"


H200_PAIR = MeasuredMachine(
    name="2 × H200 NVLink in a KVM guest",
    gpu="H200 SXM",
    driver="580.159.04",
    torch="2.11.0+cu130",
    nccl="2.28.9",
    date="2026-11-30",
    memory_gb_per_s=(4166.8, 4345.5),
    with_host_gb_per_s=(52.9, 55.0),
    over_host_gb_per_s=(35.0, 36.9),
    peer_gb_per_s=(363.7, 388.0),
    over_host_small_us=(12.6, 21.4),
    peer_small_us=(2.5, 2.5),
    all_together=(1.02, 1.17),
    sums_p2p_us={
        12288: (7.48, 7.53),
        49152: (6.98, 7.02),
        196608: (7.53, 7.58),
        786432: (11.55, 11.63),
        3145728: (29.1, 29.2),
        12582912: (58.7, 59.0),
        16777216: (73.6, 73.9),
    },
    sums_shm_us={
        12288: (12.9, 13.9),
        49152: (14.2, 14.9),
        196608: (28.2, 31.0),
        786432: (53.1, 55.9),
        3145728: (131, 135),
        12582912: (453, 466),
        16777216: (601, 618),
    },
)
