"""GPU specifications: NVIDIA's figures as public comparisons print them (read November 2026).

Where sources differ the higher bandwidth stands, so that a floor of time stays a floor: RTX PRO 6000 Server
Edition 1597 or 1792 GB/s, B200 7.7 or 8 TB/s. The RTX 3080 is the common one with 10 GB.
"""

import re
from dataclasses import dataclass

READ = "2026-11"


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """bandwidth: peak memory bandwidth. pattern: matches the name nvidia-smi prints.

    geforce: a consumer product, to which the stock driver gives no peer access over PCIe.
    """

    name: str
    pattern: str
    bandwidth_gb_per_s: float
    vram_gb: int
    pcie_gen: int
    geforce: bool = False

    @property
    def source(self) -> str:
        return f"public specifications of NVIDIA {self.name}, read {READ}"


def gpu_spec(name: str | None) -> GpuSpec | None:
    """The specification of a GPU by the driver's name for it; None for one not listed."""
    return next((spec for spec in GPUS if name and re.search(spec.pattern, name, re.I)), None)


# The more specific pattern stands before the more general one.
GPUS: tuple[GpuSpec, ...] = (
    GpuSpec("RTX PRO 6000 Blackwell Server", r"PRO 6000 .*Server", 1792, 96, 5),
    GpuSpec("RTX PRO 6000 Blackwell Max-Q", r"PRO 6000 .*Max-?Q", 1792, 96, 5),
    GpuSpec("RTX PRO 6000 Blackwell Workstation", r"PRO 6000", 1792, 96, 5),
    GpuSpec("RTX PRO 5000 Blackwell", r"PRO 5000", 1344, 48, 5),
    GpuSpec("B300 SXM", r"\bG?B300", 8000, 288, 6),
    GpuSpec("B200 SXM", r"\bG?B200", 8000, 180, 5),
    GpuSpec("H200 NVL", r"H200 NVL", 4800, 141, 5),
    GpuSpec("H200 SXM", r"\bH200", 4800, 141, 5),
    GpuSpec("H100 NVL", r"H100 NVL", 3938, 94, 5),
    GpuSpec("H100 PCIe", r"H100 PCIe", 2039, 80, 5),
    GpuSpec("H100 SXM", r"\bH[18]00", 3352, 80, 5),
    GpuSpec("H20", r"\bH20\b", 4000, 96, 5),
    GpuSpec("A100 SXM 80 GB", r"A[18]00-SXM.-80GB", 2039, 80, 4),
    GpuSpec("A100 PCIe 80 GB", r"A[18]00.*80GB", 1935, 80, 4),
    GpuSpec("A100 40 GB", r"\bA[18]00", 1555, 40, 4),
    GpuSpec("L40S", r"\bL40S", 864, 48, 4),
    GpuSpec("L40", r"\bL40\b", 864, 48, 4),
    GpuSpec("L4", r"\bL4\b", 300, 24, 4),
    GpuSpec("A40", r"\bA40\b", 696, 48, 4),
    GpuSpec("A10", r"\bA10G?\b", 600, 24, 4),
    GpuSpec("RTX 6000 Ada", r"6000 Ada", 960, 48, 4),
    GpuSpec("RTX A6000", r"A6000", 768, 48, 4),
    GpuSpec("V100S", r"\bV100S", 1134, 32, 3),
    GpuSpec("V100", r"\bV100", 900, 32, 3),
    GpuSpec("T4", r"\bT4\b", 320, 16, 3),
    GpuSpec("GeForce RTX 5090", r"RTX 5090", 1792, 32, 5, geforce=True),
    GpuSpec("GeForce RTX 5080", r"RTX 5080", 960, 16, 5, geforce=True),
    GpuSpec("GeForce RTX 5070 Ti", r"RTX 5070 Ti", 896, 16, 5, geforce=True),
    GpuSpec("GeForce RTX 5070", r"RTX 5070", 672, 12, 5, geforce=True),
    GpuSpec("GeForce RTX 5060 Ti", r"RTX 5060 Ti", 448, 16, 5, geforce=True),
    GpuSpec("GeForce RTX 4090", r"RTX 4090", 1008, 24, 4, geforce=True),
    GpuSpec("GeForce RTX 4080 SUPER", r"RTX 4080 SUPER", 736, 16, 4, geforce=True),
    GpuSpec("GeForce RTX 4080", r"RTX 4080", 717, 16, 4, geforce=True),
    GpuSpec("GeForce RTX 3090 Ti", r"RTX 3090 Ti", 1008, 24, 4, geforce=True),
    GpuSpec("GeForce RTX 3090", r"RTX 3090", 936, 24, 4, geforce=True),
    GpuSpec("GeForce RTX 3080", r"RTX 3080", 760, 10, 4, geforce=True),
)
