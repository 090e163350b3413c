"""The driver's answers about GPU pairs: peer-to-peer matrices and topology."""

from dataclasses import dataclass
from enum import StrEnum

from agents.facts.fact import Fact


class P2pCode(StrEnum):
    """Answers of `nvidia-smi topo -p2p` (NVML enum; the codes' meaning: facts of the driver source)."""

    OK = "OK"
    CNS = "CNS"
    GNS = "GNS"
    TNS = "TNS"
    DR = "DR"
    NS = "NS"
    UNKNOWN = "U"


@dataclass(frozen=True, slots=True)
class P2pMatrix:
    """codes[i][j]: the driver's answer for gpus[i] reaching gpus[j]; None on the diagonal and where cut.

    JSON shape: {"gpus": ["GPU0", …], "codes": [[null, "NS", …], …]}.
    """

    gpus: tuple[str, ...]
    codes: tuple[tuple[P2pCode | None, ...], ...]

    def pairs(self) -> dict[tuple[str, str], P2pCode]:
        """Every ordered pair that has an answer."""
        return {
            (self.gpus[i], self.gpus[j]): code
            for i, row in enumerate(self.codes)
            for j, code in enumerate(row)
            if code is not None and i != j
        }


@dataclass(frozen=True, slots=True)
class TopologyMatrix:
    """links[i][j]: path type from devices[i] to devices[j] ("PHB", "NV18"); None on the diagonal or cut.

    devices: GPUs then NICs, in print order. numa_affinity None per device: N/A.
    """

    devices: tuple[str, ...]
    links: tuple[tuple[str | None, ...], ...]
    cpu_affinity: tuple[str | None, ...] = ()
    numa_affinity: tuple[str | None, ...] = ()
    nic_names: tuple[tuple[str, str], ...] = ()

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(d for d in self.devices if d.startswith("GPU"))

    def gpu_links(self) -> dict[tuple[str, str], str]:
        """Path type for every ordered pair of GPUs that has one."""
        return {
            (a, b): link
            for a, row in zip(self.devices, self.links, strict=False)
            for b, link in zip(self.devices, row, strict=False)
            if link is not None and a != b and a.startswith("GPU") and b.startswith("GPU")
        }


P2P_READ: Fact[P2pMatrix] = Fact("guest.p2p_read", "Peer reads, driver’s answer", P2pMatrix)
P2P_WRITE: Fact[P2pMatrix] = Fact("guest.p2p_write", "Peer writes, driver’s answer", P2pMatrix)
P2P_NVLINK: Fact[P2pMatrix] = Fact("guest.p2p_nvlink", "Peer access over NVLink", P2pMatrix)
P2P_ATOMICS: Fact[P2pMatrix] = Fact("guest.p2p_atomics", "Peer atomics", P2pMatrix)
P2P_PCIE: Fact[P2pMatrix] = Fact("guest.p2p_pcie", "Peer access over PCIe (property)", P2pMatrix)
TOPOLOGY: Fact[TopologyMatrix] = Fact("guest.topology", "Topology matrix", TopologyMatrix)
WORST_LINK: Fact[str] = Fact("guest.worst_link", "Farthest path between two GPUs", str)
