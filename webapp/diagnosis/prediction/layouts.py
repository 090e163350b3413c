"""Ways to spread the model over the GPUs: what each costs in communication, and whether it fits.

Source: Megatron-LM (Narayanan et al. 2021) for tensor and pipeline parallel; SGLang and vLLM
documentation of expert parallel and DP attention, 2026.
"""

from __future__ import annotations

from dataclasses import replace

from agents.facts.workload import MODEL, PARALLELISM, Model, Parallelism
from webapp.diagnosis.case import Case, Layout, Restart
from webapp.diagnosis.claim import Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import step_tokens
from webapp.diagnosis.prediction.communication import PER_LAYER, all_reduce_us, gpu_link, message_bytes
from webapp.diagnosis.prediction.memory_fit import fit
from webapp.diagnosis.reference.curves import ring_steps
from webapp.diagnosis.situation.copy_curve import copy_curve
from webapp.diagnosis.situation.pairs import gpu_count

OWN_COLLECTIVES = "its own collectives take the place of the all-reduces: measure them"


def layouts(case: Case) -> tuple[Layout, ...]:
    """The served layout first; none when the parallelism is not known."""
    facts = case.facts
    now = facts.value(PARALLELISM)
    if now is None:
        return ()
    found = [replace(_layout(facts, now, "as served"), restart=Restart.NONE)]
    if now.tp % 2 == 0 and now.tp > 1:
        found += [_two_stages(facts, now), _subset(facts, now)]
    found += _other(facts, now)
    return tuple({layout.id: layout for layout in reversed(found)}.values())[::-1]


def name_of(parallel: Parallelism) -> str:
    """ "tp4+pp2"; parts of 1 are left out, except tp."""
    parts = [f"tp{parallel.tp}"]
    parts += [f"pp{parallel.pp}"] if parallel.pp > 1 else []
    parts += [f"ep{parallel.ep}"] if parallel.ep > 1 else []
    parts += [f"dp{parallel.dp}"] if parallel.dp > 1 else []
    return "+".join(parts) + ("+dp_attention" if parallel.dp_attention else "")


def comm_per_token_ms(facts: Facts, tp: int) -> Range | None:
    """All-reduces of one token at concurrency 1 with this tensor-parallel size, from the copies."""
    if tp == 1:
        return (0.0, 0.0)
    curve = copy_curve(facts)
    if curve is None:
        return None
    model = facts.value(MODEL) or Model()
    if not (model.layers and model.hidden_size and model.activation_bytes):
        return None
    size = message_bytes(model, step_tokens(facts, 1))
    low, high = all_reduce_us(curve, size, tp, gpu_link(facts))
    count = PER_LAYER * model.layers
    return low * count / 1e3, high * count / 1e3


def _layout(facts: Facts, parallel: Parallelism, why: str) -> Layout:
    facts = facts.scope()
    facts.value(PARALLELISM)
    own = [*_expert_parallel(facts, parallel), *_dp_attention(parallel)]
    room = fit(facts, parallel.tp * parallel.pp)
    comm = None if own else comm_per_token_ms(facts, parallel.tp)
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


def _two_stages(facts: Facts, now: Parallelism) -> Layout:
    half = now.tp // 2
    why = (
        f"as many all-reduces in sequence, with {ring_steps(half)} ring steps in place of "
        f"{ring_steps(now.tp)}; at concurrency 1 the stages wait for each other, so weight reads per "
        "token double"
    )
    return _layout(facts, replace(now, tp=half, pp=now.pp * 2), why)


def _subset(facts: Facts, now: Parallelism) -> Layout:
    half = now.tp // 2
    why = f"half the GPUs, {ring_steps(half)} ring steps, twice the weights on each"
    return _layout(facts, replace(now, tp=half), why)


def _other(facts: Facts, now: Parallelism) -> list[Layout]:
    """Expert parallel for a mixture of experts, and DP attention, on the GPUs in use."""
    model, count = facts.value(MODEL), gpu_count(facts) or now.tp
    found = []
    if model and model.experts and now.ep == 1 and count > 1:
        found.append(_layout(facts, replace(now, ep=now.tp), ""))
    if now.tp > 1 and not now.dp_attention:
        found.append(_layout(facts, replace(now, dp_attention=True), ""))
    return found
