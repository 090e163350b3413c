"""The topology as nested lists: what the map shows, each device below what it hangs on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.webapp.diagnosis.building import facts_of
from tests.webapp.pages.test_reasoning_pages import CASES, switch_machine
from webapp.diagnosis.situation.topology import draw
from webapp.diagnosis.situation.vm import with_vm
from webapp.presenting.topology_figure import figure
from webapp.presenting.topology_outline import Node, outline


def _all(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _all(node.below)


@pytest.mark.parametrize("case", CASES)
def test_it_names_what_the_map_does(case: str) -> None:
    topology = draw(with_vm(facts_of(*CASES[case])))
    map_ = figure(topology)
    assert map_ is not None
    nodes = [node for tree in outline(topology) for node in _all(tree.nodes)]
    said = sorted((node.kind, ", ".join(filter(None, [node.title, node.about]))) for node in nodes)
    assert said == sorted((box.kind, box.title) for box in map_.boxes)


def test_a_gpu_hangs_below_its_switch_and_names_its_twin() -> None:
    host, guest = outline(draw(with_vm(facts_of(*switch_machine(8)))))
    (switch,) = host.nodes[0].below[0].below
    assert (switch.kind, len(switch.below)) == ("switch", 4)
    twins = [gpu.twin for gpu in _all(host.nodes) if gpu.kind == "real"]
    assert twins == [f"GPU {7 - i}" for i in range(8)]
    assert {leaf.twin for leaf in _all(guest.nodes) if not leaf.below} == {
        gpu.title.removeprefix("GPU ") for gpu in _all(host.nodes) if gpu.kind == "real"
    }
