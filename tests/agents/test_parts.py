"""What stands beside a part and belongs to it: a section's name above it, a mark that it was cut."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts.bench import COPY
from agents.facts.host import IOMMU_GROUPS, PCI_MAPPINGS
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.vm import VMS
from agents.raw_reading import read_raw

GROUP = "IOMMU Group 7:\n\t41:00.0 VGA compatible controller [0300]: NVIDIA Corporation [10de:2204]\n"


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


SEVERAL = """$ uname -r
6.8.0
$ qm config 128
args: -foo
machine: q35
$ ./copies
12 KB: 13.7 us (0.90 GB/s)
4 MB: 32.6 GB/s, 128.7 us
"""


def test_lines_that_values_name_are_those_of_the_whole_paste() -> None:
    items = read_raw(SEVERAL.encode(), role=None).items
    values: dict[str, Any] = {r.fact_id: r.value for item in items for r in item.readings}
    (vm,) = values[VMS.id]
    assert vm.key_lines == {"args": 4, "machine": 5}
    assert [row.line for row in values[COPY.id].rows] == [7, 8]


def test_every_transport_of_a_log_is_among_the_lines_it_rests_on() -> None:
    """NCCL writes one line a channel, and those of one transport may fill pages."""
    via = ["SHM/direct/direct"] * 40 + ["P2P/CUMEM/read"] * 2 + ["NET/Socket/0"]
    log = [f"gpu-vm:77:99 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {name}" for name in via]
    (item,) = read_raw("\n".join(["NCCL version 2.27.7+cuda12.9", *log]).encode(), role=None).items
    (reading,) = [r for r in item.readings if r.fact_id == NCCL_TRANSPORTS.id]
    seen = reading.value
    assert seen
    assert (seen.shm, seen.p2p, seen.net) == (40, 2, 1)
    assert reading.lines == (2, 3, 4, 5, 42, 43, 44)
