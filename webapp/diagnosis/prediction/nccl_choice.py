"""What a sweep over NCCL's settings says about this session: at its message sizes, in its step."""

from __future__ import annotations

from dataclasses import dataclass

from agents.facts import ReadingKind
from agents.facts.bench import NCCL_SWEEP, SweepResult
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model
from webapp.diagnosis.claim import Basis, Claim, EvidenceRef
from webapp.diagnosis.compare.sweep import LEAST_BLOCKS, ArmEffect, SweepComparison, compare_sweep
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import step_tokens
from webapp.diagnosis.prediction.communication import PER_LAYER, message_bytes
from webapp.diagnosis.wording import percent, span


@dataclass(frozen=True, slots=True)
class NcclChoice:
    """result and compared: of the newest sweep. says: the answer in one sentence. price: what the
    recommended setting costs large messages, "" if nothing."""

    result: SweepResult
    compared: SweepComparison
    says: str
    price: str
    evidence: tuple[EvidenceRef, ...]


def step_sizes(facts: Facts) -> tuple[int, ...]:
    """Bytes of the all-reduces at each observed concurrency, rising; one token's when none was observed."""
    model = facts.value(MODEL) or Model()
    batches = {o.concurrency for o in facts.value(OBSERVED) or ()} or {1}
    sizes = {round(message_bytes(model, step_tokens(facts, batch))) for batch in batches}
    return tuple(sorted(size for size in sizes if size > 0))


def nccl_choice(facts: Facts) -> NcclChoice | None:
    """None when nothing was swept."""
    return facts.derived(_choice)


def swept(facts: Facts, arm: str) -> tuple[ArmEffect, Claim] | None:
    """What the sweep told of this arm, and that as a claim; None when it was not compared."""
    newest = nccl_choice(facts)
    effect = next((e for e in newest.compared.arms if e.arm.name == arm), None) if newest else None
    if not newest or not effect or effect.ratio is None or not effect.low or not effect.high:
        return None
    settings = " ".join(f"{name}={value}" for name, value in effect.arm.settings.items())
    text = (
        f"with {settings} the all-reduces take {effect.ratio:.2f} × as long "
        f"({span((effect.low, effect.high), 2)}) in {effect.blocks} blocks"
    )
    return effect, Claim(text, newest.evidence, (effect.low, effect.high), Basis.MEASURED)


def _choice(facts: Facts) -> NcclChoice | None:
    best = facts.best(NCCL_SWEEP)
    if best is None or best.reading.kind is not ReadingKind.KNOWN or best.reading.value is None:
        return None
    return choice(best.reading.value, facts, best.refs[:3])


def choice(result: SweepResult, facts: Facts | None = None, evidence: tuple[EvidenceRef, ...] = ()) -> NcclChoice:
    """facts: what is known of the session; without any, the sweep's own sizes and no step."""
    known = facts or Facts({})
    compared = compare_sweep(result, weights=_weights(known, result), all_reduces=_all_reduces(known, result))
    return NcclChoice(result, compared, _says(compared), _price(compared.recommended), evidence)


def _price(best: ArmEffect | None) -> str:
    if not best or not best.dear_at:
        return ""
    ratio = dict(best.by_size)[best.dear_at]
    return (
        f"messages of {best.dear_at / 2**20:g} MiB, as long prompts send them, take {ratio:.2f} × as long "
        "with it: try it under the whole load before it stays"
    )


def _weights(facts: Facts, result: SweepResult) -> tuple[tuple[int, float], ...]:
    """The session's own sizes, each as often, when all of them were measured; else the sweep's."""
    sizes = step_sizes(facts)
    measured = {row.size_bytes for row in result.rows}
    return tuple((size, 1.0) for size in sizes) if sizes and measured >= set(sizes) else ()


def _all_reduces(facts: Facts, result: SweepResult) -> float | None:
    """In one step; None where the sweep's ranks are not those that the model runs on."""
    model, parallel = facts.value(MODEL), facts.value(PARALLELISM)
    if not model or not model.layers or not parallel or parallel.tp != result.ranks:
        return None
    return float(PER_LAYER * model.layers)


def _says(comparison: SweepComparison) -> str:
    best = comparison.recommended
    if comparison.blocks < LEAST_BLOCKS:
        return f"{comparison.blocks} whole blocks are too few to tell the settings apart"
    if not comparison.has_comparison:
        return "no setting ran to its end, so none can be compared"
    if best and best.ratio and best.low and best.high:
        span = percent((1 - best.high, 1 - best.low))
        settings = " ".join(f"{name}={value}" for name, value in best.arm.settings.items())
        return f"{settings} takes {(1 - best.ratio) * 100:.0f} % ({span}) off the time of the all-reduces"
    reach = comparison.detectable
    seen = f"; a change of about {reach * 100:.0f} % would have shown" if reach else ""
    if any(effect.ratio and effect.ratio < 1 for effect in comparison.differing):
        return f"no setting gains more than 2 %{seen}"
    if comparison.differing:
        return f"no setting is faster than NCCL’s own choice, {len(comparison.differing)} are slower{seen}"
    return f"no arm differs from NCCL’s own choice beyond chance{seen}"
