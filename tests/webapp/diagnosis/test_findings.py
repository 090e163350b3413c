"""Findings say something only where it matters, and of the machine that was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow, Timing
from agents.facts.gpu import GPUS
from agents.facts.host import GPU_PATHS, IOMMU_GROUPS, PLATFORM, GpuPath, IommuGroup, Platform
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import VIRT_KIND
from tests.webapp.diagnosis.building import EIGHT, facts_of, kvm_guest, matrix, sourced
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts

BARE = VIRT_KIND.known("none", lines=(1,))
GEFORCE = GPUS.known(tuple(replace(g, name="NVIDIA GeForce RTX 5060 Ti") for g in EIGHT), lines=(3,))


def found(*readings: Reading[Any]) -> dict[str, str]:
    """Text by finding."""
    return {
        finding.id: " ".join(claim.text for claim in finding.claims)
        for finding in diagnose(facts_of(*readings)).findings
    }


def without(readings: list[Reading[Any]], *fact_ids: str) -> list[Reading[Any]]:
    return [reading for reading in readings if reading.fact_id not in fact_ids]


def copies(*rows: tuple[CopyPath, int, float]) -> Reading[Any]:
    timed = tuple(CopyRow(path, "0", "1", size, us, Timing.HOST_SYNC) for path, size, us in rows)
    return COPY.known(CopyResult(timed), lines=(1,))


def test_an_allowed_geforce_is_a_warning_that_names_its_ground() -> None:
    guest = without(kvm_guest(P2pCode.OK), GPUS.id)
    assert "data never arrived" in found(*guest, GEFORCE)["geforce_allowed"]
    bare = without(guest, VIRT_KIND.id, "guest.kvm_visible")
    assert "patched module" in found(*bare, BARE, GEFORCE)["geforce_allowed"]
    assert "geforce_allowed" not in found(*kvm_guest(P2pCode.OK))
    assert "geforce_allowed" not in found(*without(kvm_guest(), GPUS.id), GEFORCE)


def test_a_slow_copy_inside_one_gpu_is_no_wrong_baseline() -> None:
    peer = (CopyPath.PEER, 4 << 20, 130.0)
    fast = found(copies(peer, (CopyPath.SAME, 4 << 20, 4.0)))
    assert "a Gen5 x16 link gives 63 GB/s" in fast["wrong_baseline"]
    assert "wrong_baseline" not in found(copies(peer, (CopyPath.SAME, 4 << 20, 500.0)))


@pytest.mark.parametrize(("us", "said"), [(13.7, True), (1700.0, False)])
def test_synchronising_matters_only_beside_a_short_copy(us: float, said: bool) -> None:
    assert ("host_synchronised" in found(copies((CopyPath.PEER, 12288, us)))) is said


def test_two_matrices_that_differ_are_told_by_their_codes() -> None:
    first, second = (P2P_READ.known(matrix(4, code)) for code in (P2pCode.NS, P2pCode.OK))

    one, other = sourced(first)[0], replace(sourced(second)[0], source="another")
    texts = [c.text for c in diagnose(Facts.of([one, other])).contradictions]
    assert any("NS on 12 of 12 pairs" in t and "OK on 12 of 12 pairs" in t for t in texts)


@pytest.mark.parametrize("roots", [1, 2, 3])
def test_root_complexes_are_counted_where_there_are_several(roots: int) -> None:
    paths = tuple(GpuPath(f"0000:{n:02x}:00.0", f"0000:{n % roots:02x}") for n in range(6))
    groups = tuple(IommuGroup(n, (f"0000:{n:02x}:00.0",)) for n in range(6))
    readings = (GPU_PATHS.known(paths), IOMMU_GROUPS.known(groups), PLATFORM.known(Platform(cpu="AMD EPYC 9335")))
    found = {finding.id: finding for finding in diagnose(facts_of(*readings)).findings}
    texts = [claim.text for claim in found["separate_groups"].claims]
    assert any(text.startswith(f"{roots} root complexes do not forbid") for text in texts) is (roots > 1)
