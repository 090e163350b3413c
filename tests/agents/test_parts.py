"""What stands beside a part and belongs to it: a section's name above it, a mark that it was cut."""

from __future__ import annotations

import pytest

from agents.facts.host import IOMMU_GROUPS, PCI_MAPPINGS
from agents.read import read_raw

GROUP = (
    "IOMMU Group 7:\n\t41:00.0 VGA compatible controller [0300]: NVIDIA Corporation [10de:2204]\n"
)


@pytest.mark.parametrize("above", ["# ./groups.sh\n...\n", "…\n\n", "[...]\n", ""])
@pytest.mark.parametrize("below", ["...\n", "\n[…]\n", ""])
def test_a_mark_beside_a_part_says_that_there_was_more(above: str, below: str) -> None:
    (item,) = read_raw((above + GROUP + below).encode(), role=None).items
    (reading,) = [r for r in item.readings if r.fact_id == IOMMU_GROUPS.id]
    assert bool(reading.missing) == bool(above or below)


def test_a_pagers_mark_only_parts_pages() -> None:
    (item,) = read_raw((GROUP + "--More--\n").encode(), role=None).items
    assert not item.readings[0].missing


@pytest.mark.parametrize("name", ["gpu-pool", "nvidia-gpu", "cat"])
def test_a_mapping_keeps_the_name_above_it(name: str) -> None:
    text = f"some words before\n{name}\n\tmap id=10de:2bb5,iommugroup=10,node=pve,path=0000:01:00\n"
    (item,) = read_raw(text.encode(), role=None).items
    (reading,) = [r for r in item.readings if r.fact_id == PCI_MAPPINGS.id]
    assert [m.mapping for m in reading.value or ()] == [name]
    assert item.lines == (2, 3)
