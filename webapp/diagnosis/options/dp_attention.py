"""Attention on whole requests, one replica a GPU; the MoE still exchanges tokens.

Source: SGLang documentation, --enable-dp-attention, 2026.
"""

from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen


def judge(case: Case) -> Advice:
    if case.facts.value(PARALLELISM, where=lambda parallel: parallel.dp_attention):
        return advise(OptionStatus.DONE, seen("it is in use", case.facts.refs(PARALLELISM), ""))
    text = (
        "can help at high concurrency and needs memory for replicated attention weights; it does not "
        "help a single stream"
    )
    return advise(OptionStatus.POSSIBLE, because(text, "SGLang documentation of DP attention, 2026"))


option = Option(
    __name__,
    title="Data-parallel attention",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="start the engine with the old sizes",
    verified_by="bench.serving at concurrency 1 and at the highest, five runs each",
    changes=("guest.engine", "guest.engine_start", "user.parallelism"),
    judge=judge,
)
