"""What the engine's own logs say: NCCL version, environment, transports; the serving engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class NcclTransports:
    """Channel connections by transport, counted in an NCCL_DEBUG=INFO log.

    detail: the distinct "via …" texts, sorted. refused: pairs NCCL says have P2P disabled.
    nodes, ranks: of the largest communicator, None where the log does not say. initialised: whether
    it says "Init COMPLETE"; None where it does not even say that initialising began.
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
    """name: "sglang", "vllm", … flags: as given on its command line or printed at start."""

    name: str
    version: str | None = None
    flags: Mapping[str, str] = field(default_factory=dict)


NCCL_VERSION: Fact[str] = Fact("guest.nccl_version", "NCCL version", str)
NCCL_TRANSPORTS: Fact[NcclTransports] = Fact(
    "guest.nccl_transports", "Transports NCCL took", NcclTransports
)
NCCL_ENV: Fact[Mapping[str, str]] = Fact(
    "guest.nccl_env", "NCCL variables in effect", dict[str, str]
)
ENGINE: Fact[Engine] = Fact("guest.engine", "Serving engine", Engine)
