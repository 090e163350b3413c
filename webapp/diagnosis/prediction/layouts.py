"""Ways to spread the model over the GPUs: what each costs in communication, and whether it fits.

Source: Megatron-LM (Narayanan et al. 2021) for tensor and pipeline parallel; SGLang and vLLM
documentation of expert parallel and DP attention, 2026.
"""

from dataclasses import replace

from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from webapp.diagnosis.case import Case, Layout, Restart
from webapp.diagnosis.claim import Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import step_tokens
from webapp.diagnosis.prediction.communication import PER_LAYER, all_reduce_us, message_bytes
from webapp.diagnosis.prediction.memory_fit import fit
from webapp.diagnosis.reference.curves import ring_steps
from webapp.diagnosis.situation import Situation

OWN_COLLECTIVES = "its own collectives take the place of the all-reduces: measure them"


def layouts(case: Case) -> tuple[Layout, ...]:
    """The served layout first; none when the parallelism is not known."""
    facts = case.facts
    now = facts.value(PARALLELISM)
    if now is None:
        return ()
    every = [replace(_layout(case.situation, now, "as served"), restart=Restart.NONE)]
    if now.tp % 2 == 0 and now.tp > 1:
        every += [_two_stages(case.situation, now), _subset(case.situation, now)]
    every += _other(case.situation, now)
    return tuple({layout.id: layout for layout in reversed(every)}.values())[::-1]


def name_of(parallel: Parallelism) -> str:
    """ "tp4+pp2"; parts of 1 are left out, except tp."""
    parts = [f"tp{parallel.tp}"]
    parts += [f"pp{parallel.pp}"] if parallel.pp > 1 else []
    parts += [f"ep{parallel.ep}"] if parallel.ep > 1 else []
    parts += [f"dp{parallel.dp}"] if parallel.dp > 1 else []
    return "+".join(parts) + ("+dp_attention" if parallel.dp_attention else "")


def comm_per_token_ms(situation: Situation, tp: int) -> Range | None:
    """All-reduces of one token at concurrency 1 with this tensor-parallel size, from the copies."""
    facts = situation.facts
    if tp == 1:
        return (0.0, 0.0)
    curve = situation.copy_curve
    if curve is None:
        return None
    model = facts.value(MODEL) or Model()
    if not (model.layers and model.hidden_size and model.activation_bytes):
        return None
    size = message_bytes(model, step_tokens(facts, 1))
    low, high = all_reduce_us(curve, size, tp, situation.link)
    count = PER_LAYER * model.layers
    return low * count / 1e3, high * count / 1e3


def _layout(situation: Situation, parallel: Parallelism, why: str) -> Layout:
    situation = situation.scope()
    facts = situation.facts
    facts.value(PARALLELISM)
    own = [*_expert_parallel(facts, parallel), *_dp_attention(parallel)]
    room = fit(facts, parallel.tp * parallel.pp)
    comm = None if own else comm_per_token_ms(situation, parallel.tp)
    parts = [*own, OWN_COLLECTIVES, room.why] if own else [why, room.why]
    text = "; ".join(part for part in parts if part)
    return Layout(name_of(parallel), comm, room.fits, text, reads=facts.reads)


def _expert_parallel(facts: Facts, parallel: Parallelism) -> list[str]:
    """What whole experts on each GPU mean for one request at a time."""
    if parallel.ep <= 1:
        return []
    model = facts.value(MODEL) or Model()
    picks = f"{model.experts_active} of {model.experts}" if model.experts_active else "few of the"
    text = (
        f"at concurrency 1 a token wakes {picks} experts, so the other GPUs wait in every such layer; "
        "it can help with many requests"
    )
    return [text]


def _dp_attention(parallel: Parallelism) -> list[str]:
    if not parallel.dp_attention:
        return []
    text = (
        "every replica holds all attention weights and its own requests’ cache; at concurrency 1 one GPU "
        "computes attention and the others wait, so a single stream gets no faster; it can help with many "
        "requests"
    )
    return [text]


def _two_stages(situation: Situation, now: Parallelism) -> Layout:
    half = now.tp // 2
    why = (
        f"as many all-reduces in sequence, with {ring_steps(half)} ring steps in place of "
        f"{ring_steps(now.tp)}; at concurrency 1 the stages wait for each other, so weight reads per "
        "token double"
    )
    return _layout(situation, replace(now, tp=half, pp=now.pp * 2), why)


def _subset(situation: Situation, now: Parallelism) -> Layout:
    half = now.tp // 2
    why = f"half the GPUs, {ring_steps(half)} ring steps, twice the weights on each"
    return _layout(situation, replace(now, tp=half), why)


def _other(situation: Situation, now: Parallelism) -> list[Layout]:
    """Expert parallel for a mixture of experts, and DP attention, on the GPUs in use."""
    model, count = situation.facts.value(MODEL), situation.gpu_count or now.tp
    others = []
    if model and model.experts and now.ep == 1 and count > 1:
        others.append(_layout(situation, replace(now, ep=now.tp), ""))
    if now.tp > 1 and not now.dp_attention:
        others.append(_layout(situation, replace(now, dp_attention=True), ""))
    return others
