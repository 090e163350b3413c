"""What the map draws while nobody has said whether a hypervisor stands between driver and wiring."""

from __future__ import annotations

import pytest

from agents.facts.gpu import GPUS, Gpu
from agents.facts.platform import VIRT_KIND
from tests.webapp.diagnosis.building import facts_of
from webapp.diagnosis.situation.topology import draw
from webapp.presenting.topology_figure import figure


@pytest.mark.parametrize(("said", "kind"), [("none", "own"), ("kvm", "fake"), (None, "unsaid")], ids=str)
def test_a_gpu_is_real_or_emulated_only_once_it_was_said(said: str | None, kind: str) -> None:
    gpus = GPUS.known(tuple(Gpu(i, "Card 96GB", pci_address=f"0000:0{i}:00.0") for i in (1, 2)))
    found = figure(draw(facts_of(gpus, *([VIRT_KIND.known(said, lines=(1,))] if said else []))))
    assert found is not None
    assert {box.kind for box in found.boxes} == {kind}
