"""What a snapshot of the GPUs shows of their load: busy share, power, clocks, and whether tokens flow."""

from __future__ import annotations

from dataclasses import dataclass

from agents.facts.bench import SERVING
from agents.facts.gpu import GPUS
from agents.facts.workload import OBSERVED
from webapp.diagnosis.facts import Facts

BUSY_PERCENT = 90


@dataclass(frozen=True, slots=True)
class Load:
    """Over the GPUs that report it. *_share: 0…1. None: no GPU reports it.

    power_share: the highest draw over limit. busy_percent: the lowest utilisation.
    """

    busy_percent: int | None = None
    power_share: float | None = None
    temperature_celsius: int | None = None
    clock_share: float | None = None

    @property
    def busy(self) -> bool:
        return self.busy_percent is not None and self.busy_percent >= BUSY_PERCENT


def load(facts: Facts) -> Load:
    gpus = [gpu for gpu in facts.value(GPUS) or () if not gpu.lost]
    busy = [g.utilisation_percent for g in gpus if g.utilisation_percent is not None]
    power = [g.power_w / g.power_limit_w for g in gpus if g.power_w and g.power_limit_w]
    heat = [g.temperature_celsius for g in gpus if g.temperature_celsius is not None]
    clocks = [g.sm_clock_mhz / g.sm_clock_max_mhz for g in gpus if g.sm_clock_mhz and g.sm_clock_max_mhz]
    return Load(min(busy, default=None), max(power, default=None), max(heat, default=None), min(clocks, default=None))


def tokens_flow(facts: Facts) -> bool | None:
    """Whether output was seen at all; None: nobody said."""
    rates = [row.output_tokens_per_s for row in facts.value(SERVING) or ()]
    said = [r for r in rates if r is not None]
    said += [o.output_tokens_per_s[1] for o in facts.value(OBSERVED) or () if o.output_tokens_per_s]
    return max(said) > 0 if said else None
