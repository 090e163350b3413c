"""Whole experts on each GPU; tokens travel to them by all-to-all.

Source: SGLang and vLLM documentation of expert parallel, 2026.
"""

from agents.facts.workload import MODEL, PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen


def judge(case: Case) -> Advice:
    parallel = case.facts.value(PARALLELISM, where=lambda parallel: parallel.ep > 1)
    if parallel:
        text = f"expert parallel {parallel.ep} is in use"
        return advise(OptionStatus.DONE, seen(text, case.facts.refs(PARALLELISM), ""))
    if case.facts.value(MODEL, where=lambda model: model.total_params and model.total_params == model.active_params):
        return advise(OptionStatus.BLOCKED, seen("a dense model has no experts to spread", case.facts.refs(MODEL), ""))
    text = (
        "an all-to-all takes the place of the MoE’s all-reduces; without P2P it goes through host memory "
        "too, so only a measurement tells"
    )
    return advise(OptionStatus.POSSIBLE, because(text, "SGLang and vLLM documentation of expert parallelism, 2026"))


option = Option(
    __name__,
    title="Expert parallelism",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="start the engine with the old sizes",
    verified_by="bench.serving at concurrency 1 and at the highest, five runs each",
    changes=("guest.engine", "guest.engine_start", "user.parallelism"),
    judge=judge,
)
