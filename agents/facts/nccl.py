"""Facts from the engine's own logs: NCCL version, environment, transports; the serving engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class NcclTransports:
    """Channel connections by transport, counted in an NCCL_DEBUG=INFO log.

    detail: the distinct "via …" texts, sorted. refused: pairs for which NCCL reports P2P as disabled. nodes, ranks:
    of the largest communicator, None where the log has none. initialised: whether the log says "Init COMPLETE"; None
    where it does not show that initialising began.
    """

    p2p: int = 0
    shm: int = 0
    net: int = 0
    detail: tuple[str, ...] = ()
    refused: int = 0
    nodes: int | None = None
    ranks: int | None = None
    initialised: bool | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """name: "sglang", "vllm", … flags: from its command line or its start lines."""

    name: str
    version: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopologyGpu:
    """One GPU of NCCL's topology. link: "32.0 GT/s PCIe x16"; None: empty or width 0, as NCCL finds
    them in a VM. numa_node None: -1. switches: PCI bridges above it, outermost first."""

    pci_address: str
    rank: int | None = None
    numa_node: int | None = None
    link: str | None = None
    nvlinks: int = 0
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NcclTopology:
    """NCCL's graph of the system: detected, or read from a file."""

    gpus: tuple[TopologyGpu, ...]
    cpus: int = 0
    nics: tuple[str, ...] = ()

    @property
    def flat(self) -> bool:
        """Whether there are several GPUs and no switch above any of them."""
        return len(self.gpus) > 1 and not any(gpu.switches for gpu in self.gpus)


@dataclass(frozen=True, slots=True)
class EngineStart:
    """What an engine's start-up log shows. None: the log does not show it.

    custom_all_reduce_why: the engine's own reason for not using it. cuda_graphs False: the log says so.
    """

    custom_all_reduce: bool | None = None
    custom_all_reduce_why: str | None = None
    cuda_graphs: bool | None = None
    capture_s: float | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    attention_backend: str | None = None
    moe_backend: str | None = None


@dataclass(frozen=True, slots=True)
class EngineContainer:
    """A container that runs an engine or holds GPUs.

    ipc: "host", "private", "shareable". shm_mib: of its own /dev/shm, unless ipc is "host". gpus: "all", device ids,
    or None for no GPU. env: variables that steer NCCL, CUDA and the engine; others may be secret and are left out.
    """

    name: str
    image: str | None = None
    running: bool | None = None
    ipc: str | None = None
    shm_mib: int | None = None
    gpus: str | None = None
    network: str | None = None
    privileged: bool | None = None
    memlock_unlimited: bool | None = None
    env: Mapping[str, str] = field(default_factory=dict)


NCCL_VERSION: Fact[str] = Fact("guest.nccl_version", "NCCL version", str)
NCCL_TRANSPORTS: Fact[NcclTransports] = Fact("guest.nccl_transports", "Transports NCCL took", NcclTransports)
NCCL_ENV: Fact[Mapping[str, str]] = Fact("guest.nccl_env", "NCCL variables in effect", dict[str, str])
ENGINE: Fact[Engine] = Fact("guest.engine", "Serving engine", Engine)
NCCL_CONF: Fact[Mapping[str, str]] = Fact("guest.nccl_conf", "NCCL variables set in its files", dict[str, str])
NCCL_TOPOLOGY: Fact[NcclTopology] = Fact("guest.nccl_topology", "Topology as NCCL sees it", NcclTopology)
ENGINE_START: Fact[EngineStart] = Fact("guest.engine_start", "What the engine said at its start", EngineStart)
ENGINE_CONTAINERS: Fact[tuple[EngineContainer, ...]] = Fact(
    "guest.engine_containers", "Containers with GPUs", tuple[EngineContainer, ...]
)
