"""The arithmetic of the bound on the founding case, computed by the product's own code."""

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from agents.facts import Fact
from agents.facts.workload import MODEL, PARALLELISM
from webapp.diagnosis.case import Bound
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import bounds, step_tokens
from webapp.diagnosis.prediction.communication import PER_LAYER, message_bytes
from webapp.diagnosis.reference.curves import STAGED_SOURCE, ring_steps, ring_volume, staged_gb_per_s
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.situation.copy_curve import CopyCurve
from webapp.presenting.figures import Segment, time_bar
from webapp.runs.samples import sample_facts

# The stage with the guest's facts and its measured copies.
STAGE = "kpro6@guest"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Worked:
    """One stream of the founding case. bounds: of every observed concurrency, the lowest first."""

    bounds: tuple[Bound, ...]
    bar: tuple[Segment, ...]
    layers: int
    hidden_size: int
    activation_bytes: int
    gpus: int
    tokens: float
    message_bytes: int
    all_reduces: int
    copy_us: float
    ring_steps: int
    ring_volume: float
    plateau_gb_per_s: float
    plateau_source: str

    @property
    def single(self) -> Bound:
        return self.bounds[0]

    @property
    def high_us(self) -> float:
        """The highest cost of one all-reduce: every step of the ring costs a whole copy."""
        wire_us = self.ring_volume * self.message_bytes / (self.plateau_gb_per_s * 1e3)
        return self.ring_steps * self.copy_us + wire_us


@cache
def worked() -> Worked:
    facts = sample_facts(STAGE)
    model, parallelism = _known_value(facts, MODEL), _known_value(facts, PARALLELISM)
    situation = Situation(facts)
    of_each_load = bounds(situation)
    tokens = step_tokens(facts, of_each_load[0].concurrency)
    curve = _copy_curve(situation)
    size = message_bytes(model, tokens)
    link = situation.link
    return Worked(
        bounds=of_each_load,
        bar=time_bar(of_each_load[0]),
        layers=model.layers or 0,
        hidden_size=model.hidden_size or 0,
        activation_bytes=model.activation_bytes or 0,
        gpus=parallelism.tp,
        tokens=tokens,
        message_bytes=int(size),
        all_reduces=PER_LAYER * (model.layers or 0),
        copy_us=curve.time_us(size) or curve.smallest_us,
        ring_steps=ring_steps(parallelism.tp),
        ring_volume=ring_volume(parallelism.tp),
        plateau_gb_per_s=curve.plateau_gb_per_s or staged_gb_per_s(link.gen, link.width),
        plateau_source=STAGED_SOURCE,
    )


def _known_value(facts: Facts, fact: Fact[T]) -> T:
    value = facts.value(fact)
    if value is None:
        raise LookupError(f"{STAGE} says nothing of {fact.id}")
    return value


def _copy_curve(situation: Situation) -> CopyCurve:
    if situation.copy_curve is None:
        raise LookupError(f"{STAGE} has no copies")
    return situation.copy_curve
