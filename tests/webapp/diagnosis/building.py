"""Facts by hand: short ways to say what a machine printed."""

from __future__ import annotations

from typing import Any

from agents.facts import Reading
from agents.facts.gpu import GPUS, Gpu
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, P2pMatrix, TopologyMatrix
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from webapp.diagnosis.facts import Facts, Sourced

Readings = list[Reading[Any]]

EIGHT = tuple(Gpu(i, name="Card 96GB", mig=False, virtualisation_mode="Pass-Through") for i in range(8))


def facts_of(*readings: Reading[Any], epoch: int = 0) -> Facts:
    return Facts.of(sourced(*readings, epoch=epoch))


def sourced(*readings: Reading[Any], epoch: int = 0) -> list[Sourced]:
    return [Sourced(reading, f"{reading.fact_id}@{epoch:012x}", epoch, order) for order, reading in enumerate(readings)]


def matrix(size: int, code: P2pCode, *other: tuple[int, int, P2pCode]) -> P2pMatrix:
    """One code everywhere, except where another is given for (row, column)."""
    cells = {(row, column): value for row, column, value in other}
    codes = tuple(tuple(None if r == c else cells.get((r, c), code) for c in range(size)) for r in range(size))
    return P2pMatrix(tuple(f"GPU{i}" for i in range(size)), codes)


def topology(size: int, link: str) -> TopologyMatrix:
    rows = tuple(tuple(None if r == c else link for c in range(size)) for r in range(size))
    return TopologyMatrix(tuple(f"GPU{i}" for i in range(size)), rows)


def kvm_guest(code: P2pCode = P2pCode.NS, size: int = 8) -> Readings:
    """A KVM guest with PCIe cards and the driver's one answer for every pair."""
    return [
        VIRT_KIND.known("kvm", lines=(1,)),
        KVM_VISIBLE.known(True, lines=(2,)),
        GPUS.known(EIGHT[:size], lines=(3,)),
        TOPOLOGY.known(topology(size, "PHB"), lines=(4,)),
        P2P_READ.known(matrix(size, code), lines=(5,)),
        P2P_WRITE.known(matrix(size, code), lines=(6,)),
    ]
