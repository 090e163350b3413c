"""The figures that a person typed and the arithmetic rests on, in words: no output holds them."""

from collections.abc import Iterator

from agents.facts.workload import GOAL, MODEL, OBSERVED, PARALLELISM
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.wording import typed_range

GB = 1e9


def user_figures(facts: Facts) -> tuple[str, ...]:
    return (*_model(facts), *_observed(facts), *_goal(facts))


def _model(facts: Facts) -> Iterator[str]:
    model, parallel = facts.value(MODEL), facts.value(PARALLELISM)
    if model:
        shape = (
            ("layers", model.layers),
            ("hidden size", model.hidden_size),
            ("bytes an activation", model.activation_bytes),
            ("experts", model.experts),
            ("experts a token", model.experts_active),
        )
        yield from (f"{name} {value}" for name, value in shape if value is not None)
        sizes = (("weights read per token", model.active_weight_bytes), ("checkpoint", model.weight_bytes))
        yield from (f"{name} {typed_range(value, GB)} GB" for name, value in sizes if value)
    if parallel:
        yield f"tensor parallel {parallel.tp}"


def _observed(facts: Facts) -> Iterator[str]:
    for point in facts.value(OBSERVED) or ():
        at = f"at {point.concurrency} request{'s' if point.concurrency > 1 else ''} at once"
        if point.output_tokens_per_s:
            yield f"{typed_range(point.output_tokens_per_s)} output tok/s {at}"
        if point.total_tokens_per_s:
            yield f"{typed_range(point.total_tokens_per_s)} tok/s in all {at}"
        if point.step_ms:
            yield f"a step of {typed_range(point.step_ms)} ms {at}"


def _goal(facts: Facts) -> Iterator[str]:
    goal = facts.value(GOAL)
    if goal and goal.single_stream_tokens_per_s:
        yield f"goal {goal.single_stream_tokens_per_s:g} tok/s for a single stream"
    if goal and goal.total_tokens_per_s:
        yield f"goal {goal.total_tokens_per_s:g} output tok/s in all"
