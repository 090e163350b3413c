"""What-if analysis of the bound: sliders for its inputs, and the bound under the sliders' values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import what_if
from webapp.diagnosis.prediction.communication import PER_LAYER


@dataclass(frozen=True, slots=True)
class Slider:
    """own: the case's value, or values where several were observed; empty when the case has none, and `value`
    begins at a usual one. is_stated: `own` is stated in the case, not a default of the arithmetic."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float
    own: tuple[float, ...]
    is_stated: bool = True

    @property
    def moved(self) -> bool:
        """Whether `value` is an assumption."""
        return not any(math.isclose(self.value, own) for own in self.own)

    @property
    def number(self) -> str:
        return f"{self.value:g}"

    @property
    def note(self) -> str:
        own = ", ".join(f"{value:g}" for value in self.own)
        if not own:
            return "not said: assumed"
        return f"case: {own}" if self.is_stated else f"not said: {own} is taken"


@dataclass(frozen=True, slots=True)
class _Scale:
    label: str
    low: float
    high: float
    step: float
    usual: float


SCALES = {
    "batch": _Scale("Requests at once (batch)", 1, 256, 1, 1),
    "layers": _Scale("Layers", 1, 160, 1, 64),
    "reduces_per_layer": _Scale("All-reduces per layer", 1, 8, 1, PER_LAYER),
    "hidden_size": _Scale("Hidden size", 256, 20480, 256, 6144),
    "activation_bytes": _Scale("Bytes per activation", 1, 4, 1, 2),
    "tp": _Scale("Tensor parallel", 1, 16, 1, 8),
    "draft_tokens": _Scale("Draft tokens", 0, 16, 1, 0),
    "accepted": _Scale("Tokens accepted per step", 1, 17, 0.1, 1),
}


def sliders(facts: Facts, query: Mapping[str, str]) -> tuple[Slider, ...]:
    """One slider for each input. query: values by name; text that is no number keeps the case's own value."""
    own = _case_values(facts)
    presumed = _presumed_inputs(facts)
    inputs = (_slider(name, scale, own[name], query.get(name)) for name, scale in SCALES.items())
    return tuple(replace(slider, is_stated=slider.name not in presumed) for slider in inputs)


def _slider(name: str, scale: _Scale, own: tuple[float, ...], text: str | None) -> Slider:
    high = max(scale.high, *own) if own else scale.high
    # A range input only stands on its steps, so a whole value between two would move by itself.
    step = 1.0 if any((value - scale.low) % scale.step for value in own) else scale.step
    step = scale.step if scale.step < 1 else step
    start = own[0] if own else scale.usual
    value = min(max(_number(text, start), scale.low), high)
    value = value if scale.step < 1 else float(round(value))
    return Slider(name, scale.label, scale.low, high, step, value, own)


def _number(text: str | None, otherwise: float) -> float:
    try:
        number = float(text or "")
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def _case_values(facts: Facts) -> dict[str, tuple[float, ...]]:
    model, parallel = facts.value(MODEL) or Model(), facts.value(PARALLELISM)
    observed = facts.value(OBSERVED) or ()
    inputs: dict[str, float | None] = {
        "layers": model.layers,
        "reduces_per_layer": PER_LAYER,
        "hidden_size": model.hidden_size,
        "activation_bytes": model.activation_bytes,
        "tp": parallel.tp if parallel else None,
        "draft_tokens": model.draft_tokens or 0,
        "accepted": _case_acceptance(model),
    }
    ranges = {name: () if value is None else (float(value),) for name, value in inputs.items()}
    return {"batch": tuple(sorted(float(o.concurrency) for o in observed)), **ranges}


def _presumed_inputs(facts: Facts) -> set[str]:
    """Inputs that nobody stated and for which the arithmetic has a default."""
    model = facts.value(MODEL) or Model()
    names = {"reduces_per_layer"}
    names |= {"draft_tokens"} if model.draft_tokens is None else set()
    return names | ({"accepted"} if model.accepted_per_step is None else set())


def _case_acceptance(model: Model) -> float | None:
    """The middle of the operator's range; without draft tokens a step yields one token."""
    accepted = model.accepted_per_step
    if accepted is None:
        return None if model.draft_tokens else 1.0
    return round(sum(accepted) / 2, 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """bound: under the sliders' values. before: at the same batch with the case's own values.

    notes: what had to be corrected among the values.
    """

    bound: Bound
    before: Bound
    moved: tuple[Slider, ...]
    notes: tuple[str, ...] = ()


def outcome(facts: Facts, chosen: tuple[Slider, ...]) -> Outcome:
    at = {slider.name: slider.value for slider in chosen}
    moved = tuple(slider for slider in chosen if slider.moved)
    names = {slider.name for slider in moved}

    def whole(name: str) -> int | None:
        """None keeps the case's own."""
        return int(at[name]) if name in names else None

    most = at["draft_tokens"] + 1
    notes: tuple[str, ...] = ()
    if at["accepted"] > most and names & {"accepted", "draft_tokens"}:
        notes = (f"A step cannot yield more than its draft tokens and one: {most:g} is taken.",)
    bound = what_if(
        facts,
        batch=int(at["batch"]),
        layers=whole("layers"),
        reduces_per_layer=at["reduces_per_layer"],
        hidden_size=whole("hidden_size"),
        activation_bytes=whole("activation_bytes"),
        tp=whole("tp"),
        draft_tokens=whole("draft_tokens"),
        accepted=_chosen_acceptance(facts, names, at["accepted"], most),
    )
    return Outcome(bound, what_if(facts, batch=int(at["batch"])), moved, notes)


def _chosen_acceptance(facts: Facts, moved: set[str], accepted: float, most: float) -> Range | float | None:
    """The case's own range until the slider or the draft tokens move."""
    if not moved & {"accepted", "draft_tokens"}:
        return None
    own = (facts.value(MODEL) or Model()).accepted_per_step
    if "accepted" not in moved and own:
        return min(own[0], most), min(own[1], most)
    return min(accepted, most)
