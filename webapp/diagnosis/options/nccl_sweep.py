"""NCCL's own choices tried one by one: algorithm, protocol, channels, buffers.

All are read when a communicator is made, so each try needs fresh processes, and the engine a restart.

Source: NCCL 2.30 environment variables.
"""

from __future__ import annotations

from agents.facts.gpu import GPUS
from agents.facts.nccl import NCCL_ENV
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Bound, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Range
from webapp.diagnosis.compare.sweep import compare_sweep
from webapp.diagnosis.option import Option, advise, because, seen
from webapp.diagnosis.prediction.nccl_choice import NcclChoice, nccl_choice, step_sizes
from webapp.diagnosis.wording import load, most, span, unless

SOURCE = "NCCL 2.30 environment variables"


def judge(case: Case) -> Advice:
    facts = case.facts
    if facts.value(PARALLELISM, where=lambda parallel: parallel.tp == 1):
        text = "tensor parallel 1 makes no all-reduce"
        return advise(OptionStatus.NO_EFFECT, seen(text, facts.refs(PARALLELISM), SOURCE))
    if case.situation.exception(lambda situation: situation.gpu_count == 1):
        return advise(OptionStatus.NO_EFFECT, seen("there is one GPU", facts.refs(GPUS), SOURCE))
    choice = nccl_choice(facts)
    if choice and choice.compared.has_comparison:
        return _swept(case, choice)
    bound = case.single_stream
    text = (
        "channels (NCCL_MIN_NCHANNELS 16 to 32) raise the bandwidth of large messages, protocol LL suits "
        f"small ones; the VM keeps running. What a setting gains is known once it was measured{_limit(bound)}"
    )
    refs, limit = (bound.evidence, bound.max_gain_remove_comm) if bound else ((), None)
    claim = because(text, SOURCE, refs, limit)
    return advise(OptionStatus.RECOMMENDED if facts.value(PARALLELISM) else OptionStatus.POSSIBLE, claim)


def _limit(bound: Bound | None) -> str:
    """What no setting can gain: that is no prediction, since none removes all communication."""
    gain = bound.max_gain_remove_comm if bound else None
    if bound is None or gain is None:
        return ""
    where = f"removing all communication would, at most {most(gain)} {load(bound)}"
    return f"; none gains what {where}{unless(bound)}"


def _swept(case: Case, choice: NcclChoice) -> Advice:
    """What was measured decides: an arm that is faster beyond chance is the advice, else there is none."""
    claim = seen(choice.says, choice.evidence, SOURCE)
    if choice.compared.recommended is None:
        text = "measured at this session’s message sizes; another NCCL, driver or layout can differ"
        return advise(OptionStatus.NO_EFFECT, claim, because(text, SOURCE, choice.evidence))
    running = case.facts.value(NCCL_ENV) or {}
    if choice.compared.recommended.arm.settings.items() <= running.items():
        text = "the engine’s log shows that it is set"
        return advise(OptionStatus.DONE, claim, seen(text, case.facts.refs(NCCL_ENV), SOURCE))
    effect = _effect(case, choice)
    text = f"set it where the engine is started, and restart the engine{_saved(choice)}"
    how = because(text, SOURCE, choice.evidence)
    if choice.price:
        price = seen(choice.price, choice.evidence, SOURCE)
        return advise(OptionStatus.POSSIBLE, claim, price, how, effect=effect)
    return advise(OptionStatus.RECOMMENDED, claim, how, effect=effect)


def _saved(choice: NcclChoice) -> str:
    best, step_ms = choice.compared.recommended, choice.compared.step_ms
    if not best or step_ms is None or best.low is None or best.high is None:
        return ""
    saved = span((step_ms * (1 - best.high), step_ms * (1 - best.low)))
    return f": {saved} of {step_ms:.2f} ms a step less in all-reduces"


def _effect(case: Case, choice: NcclChoice) -> Range | None:
    """Factor on single-stream throughput: what the all-reduces of its size lose, the step loses."""
    bound, sizes, best = case.single_stream, step_sizes(case.facts), choice.compared.recommended
    if not bound or not bound.step_ms or not sizes or not best:
        return None
    alone = compare_sweep(choice.result, weights=((sizes[0], 1.0),), all_reduces=choice.compared.all_reduces)
    same = next((e for e in alone.arms if e.arm.name == best.arm.name), best)
    if alone.step_ms is None or same.low is None or same.high is None:
        return None
    fast, slow = bound.step_ms
    saved = (alone.step_ms * (1 - same.high), alone.step_ms * (1 - same.low))
    if saved[1] >= fast:  # the observed step and the sweep do not belong together
        return None
    return slow / (slow - saved[0]), fast / (fast - saved[1])


option = Option(
    __name__,
    title="Sweep NCCL’s settings, then the best in the engine",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="unset the variables and restart the engine",
    verified_by="bench.nccl_sweep at the message sizes of a step, then bench.serving",
    changes=("guest.nccl_env", "guest.nccl_transports"),
    judge=judge,
)
