"""What the sweep over NCCL's settings prints, in its true format; the figures are made up."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from typing import Any

TYPICAL_US = {12288: 12.9, 196608: 28.6, 3145728: 131.0}
SETTINGS = {
    "baseline": {},
    "p2p_off": {"NCCL_P2P_DISABLE": "1"},
    "p2p_any_distance": {"NCCL_P2P_LEVEL": "SYS"},
    "proto_simple": {"NCCL_PROTO": "Simple"},
    "proto_ll": {"NCCL_PROTO": "LL"},
    "proto_ll128": {"NCCL_PROTO": "LL128"},
    "algo_ring": {"NCCL_ALGO": "Ring"},
    "algo_tree": {"NCCL_ALGO": "Tree"},
    "channels_from_16": {"NCCL_MIN_NCHANNELS": "16"},
    "channels_to_4": {"NCCL_MAX_NCHANNELS": "4"},
    "buffer_16_mib": {"NCCL_BUFFSIZE": "16777216"},
    "shm_at_sender": {"NCCL_SHM_LOCALITY": "1"},
    "cumem_host_off": {"NCCL_CUMEM_HOST_ENABLE": "0"},
}
ENVIRONMENT = {
    "device": "cuda",
    "driver": "580.126.09",
    "torch": "2.11.0+cu130",
    "gpus": "NVIDIA L40S, NVIDIA L40S",
    "argv": "--sizes 12K,192K,3M --repeats 7",
}

Line = dict[str, Any]


def lines(
    factors: Mapping[str, float] | None = None,
    *,
    outcomes: Mapping[str, str] | None = None,
    transports: Mapping[str, str] | None = None,
    blocks: int = 7,
    noise: float = 0.01,
    seed: int = 1,
) -> list[Line]:
    """factors: time of an arm ÷ the baseline's, 1 by default. outcomes: of arms that are not right, in their
    first try. noise: standard deviation of the logarithm between tries."""
    factors, outcomes, transports = factors or {}, outcomes or {}, transports or {}
    chance, left = random.Random(seed), list(SETTINGS)
    plan = {"arms": SETTINGS, "sizes": list(TYPICAL_US), "weights": [1 / 3] * 3, "seed": seed}
    found: list[Line] = [
        {"schema": "peerpath.nccl_sweep/1", "environment": ENVIRONMENT},
        {"plan": {**plan, "repeats": blocks, "ranks": 2, "nccl": "2.28.9"}},
        *_try("baseline", 0, {}, "right", "SHM/direct/direct"),
    ]
    for block in range(1, blocks + 1):
        for name in chance.sample(left, len(left)):
            factor = factors.get(name, 1.0) * math.exp(chance.gauss(0, noise))
            times = {size: us * factor for size, us in TYPICAL_US.items()}
            outcome = outcomes.get(name, "right")
            transport = transports.get(name, "SHM/direct/direct")
            found += _try(name, block, times, outcome, transport)
            if outcome != "right":
                left.remove(name)
        found.append({"block": block, "whole": True, "seconds": 21.0})
    return [*found, {"end": True}]


def _try(name: str, block: int, times: Mapping[int, float], outcome: str, transport: str) -> list[Line]:
    what = {"ranks": 2, "dtype": "bf16", "in_place": True, "timing": "device", "method": "graph"}
    measured = {} if outcome == "hang" else times
    rows = [
        {"arm": name, "block": block, "size_bytes": size, **what, "wrong": int(outcome == "wrong")}
        | {"time_us": round(us, 4), "samples": 40, "unstable": False}
        for size, us in measured.items()
    ]
    hang = "nothing came back for 15 s, at 12288 bytes"
    why = {"right": "", "wrong": "3 elements are not the sum", "hang": hang}
    end = {"arm": name, "block": block, "outcome": outcome}
    end["why"] = why.get(outcome, "it ended at connecting")
    return [*rows, {**end, "nccl": "2.28.9", "transport": transport}]


def printed(found: list[Line]) -> str:
    return "".join(json.dumps(line) + "\n" for line in found)
