"""NCCL's own choices tried one by one: algorithm, protocol, channels, buffers.

All are read when a communicator is made, so each try restarts the engine or runs in nccl-tests.
"""

from __future__ import annotations

from agents.facts.gpu import GPUS
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.advising import advise, because, communication_effect, seen
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option
from webapp.diagnosis.pairs import gpu_count

SOURCE = "NCCL 2.30 environment variables"


def judge(case: Case) -> Advice:
    facts, parallel = case.facts, case.facts.value(PARALLELISM)
    if parallel and parallel.tp == 1:
        text = "tensor parallel 1 makes no all-reduce"
        return advise(OptionStatus.NO_EFFECT, seen(text, facts.refs(PARALLELISM), SOURCE))
    if gpu_count(facts) == 1:
        return advise(OptionStatus.NO_EFFECT, seen("there is one GPU", facts.refs(GPUS), SOURCE))
    effect, bound = communication_effect(case), case.single_stream
    text = (
        "channels (NCCL_MIN_NCHANNELS 16 to 32) raise the bandwidth of large messages, protocol LL suits "
        "small ones; the VM keeps running, and no setting gains more than removing communication would"
    )
    claim = because(text, SOURCE, bound.evidence if bound else (), effect)
    status = OptionStatus.RECOMMENDED if parallel else OptionStatus.POSSIBLE
    return advise(status, claim, effect=effect)


option = Option(
    __name__,
    title="Sweep NCCL settings with nccl-tests, then the best in the engine",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    isolation_cost="none",
    rollback="unset the variables and restart the engine",
    verified_by="bench.allreduce at the message sizes of a step, then bench.serving",
    judge=judge,
)
