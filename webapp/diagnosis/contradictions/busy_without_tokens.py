"""Full utilisation at little power and no tokens: kernels spin and wait.

40–60 % of the power limit while tokens flow is ordinary decode and no contradiction.

Source: NVML, nvmlUtilization_t; public measurements of decode, 300 W of 600 W a card.
"""

from collections.abc import Iterator

from agents.facts.gpu import GPUS, Gpu
from agents.facts.workload import OBSERVED
from webapp.diagnosis.case import Case
from webapp.diagnosis.hypotheses.hang import SPINNING_POWER
from webapp.diagnosis.rule import Clash, Rule


def check(case: Case) -> Iterator[Clash]:
    gpus = [gpu for gpu in case.facts.value(GPUS) or () if _spins(gpu)]
    flow = case.situation.tokens_flow
    if gpus and not flow:
        silent = (
            "no tokens come out: they wait, they do not work"
            if flow is False
            else "nobody said that tokens come out: they may wait and not work"
        )
        text = (
            f"{len(gpus)} GPUs show 100 % utilisation at {_drawn(gpus)} of their power limit, below "
            f"{SPINNING_POWER * 100:.0f} %, and {silent}"
        )
        yield text, case.facts.refs(GPUS, OBSERVED)


def _drawn(gpus: list[Gpu]) -> str:
    """ "18 %", or "14 to 18 %"."""
    shares = [gpu.power_w / gpu.power_limit_w for gpu in gpus if gpu.power_w and gpu.power_limit_w]
    ends = dict.fromkeys(f"{share * 100:.0f}" for share in (min(shares), max(shares)))
    return f"{' to '.join(ends)} %"


def _spins(gpu: Gpu) -> bool:
    if not gpu.power_w or not gpu.power_limit_w or gpu.utilisation_percent != 100:
        return False
    return gpu.power_w / gpu.power_limit_w < SPINNING_POWER


rule = Rule(__name__, "Busy GPUs at little power, and no tokens", check)
