"""NCCL's own choices tried one by one: algorithm, protocol, channels, buffers.

All are read when a communicator is made, so each try needs fresh processes, and the engine a restart.

Source: NCCL 2.30 environment variables.
"""

from agents.facts.gpu import GPUS
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Bound, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen
from webapp.diagnosis.wording import load, most, unless

SOURCE = "NCCL 2.30 environment variables"


def judge(case: Case) -> Advice:
    facts = case.facts
    if facts.value(PARALLELISM, where=lambda parallel: parallel.tp == 1):
        text = "tensor parallel 1 makes no all-reduce"
        return advise(OptionStatus.NO_EFFECT, seen(text, facts.refs(PARALLELISM), SOURCE))
    if case.situation.exception(lambda situation: situation.gpu_count == 1):
        return advise(OptionStatus.NO_EFFECT, seen("there is one GPU", facts.refs(GPUS), SOURCE))
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


option = Option(
    __name__,
    title="Try NCCL’s settings one by one, then the best in the engine",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="unset the variables and restart the engine",
    verified_by="bench.allreduce at the message sizes of a step, by an A/B of one setting, then bench.serving",
    changes=("guest.nccl_env", "guest.nccl_transports"),
    judge=judge,
)
