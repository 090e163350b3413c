"""The PCI bus and the driver count different numbers of GPUs.

`lspci` lists what is on the bus, `nvidia-smi` what the driver initialised.

Source: nvidia-smi manual.
"""

from collections.abc import Iterator

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule


def check(case: Case) -> Iterator[Clash]:
    """A part of a list, or lists from before and after a change, contradict nothing."""
    seen, bus = case.situation.listing, case.facts.best(GPU_COUNT_PCI)
    if seen is None or bus is None or not seen.together or seen.listed == seen.on_bus:
        return
    if seen.short or (seen.listed > seen.on_bus and bus.reading.complete):
        text = f"{seen.on_bus} NVIDIA GPUs on the PCI bus, {seen.listed} in nvidia-smi"
        yield text, case.facts.refs(GPU_COUNT_PCI, GPU_COUNT_SMI)


rule = Rule(__name__, "The bus and the driver count different GPUs", check)
