"""The PCI bus and the driver count different numbers of GPUs.

Source: lspci lists what is on the bus, nvidia-smi what the driver initialised (nvidia-smi manual).
"""

from __future__ import annotations

from collections.abc import Iterator

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Clash, Rule


def check(facts: Facts, bounds: tuple[Bound, ...]) -> Iterator[Clash]:
    on_bus, listed = facts.value(GPU_COUNT_PCI), facts.value(GPU_COUNT_SMI)
    if on_bus is not None and listed is not None and on_bus != listed:
        text = f"{on_bus} NVIDIA GPUs on the PCI bus, {listed} in nvidia-smi"
        yield text, facts.refs(GPU_COUNT_PCI, GPU_COUNT_SMI)


rule = Rule(__name__, check)
