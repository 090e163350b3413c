"""Draft tokens: several tokens a step when the drafts are right.

Source: Leviathan et al. 2023.
"""

from agents.facts.workload import MODEL
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen


def judge(case: Case) -> Advice:
    model = case.facts.value(MODEL, where=lambda model: model.draft_tokens)
    if model:
        text = f"{model.draft_tokens} draft tokens are in use"
        return advise(OptionStatus.DONE, seen(text, case.facts.refs(MODEL), ""))
    text = (
        "each step yields more tokens when drafts are accepted; every all-reduce grows by the drafts, "
        "and at high concurrency it can cost throughput"
    )
    return advise(OptionStatus.POSSIBLE, because(text, "Leviathan et al. 2023"))


option = Option(
    __name__,
    title="Speculative decoding (MTP, EAGLE)",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="remove the flags and restart the engine",
    verified_by="bench.serving: output tok/s at the same concurrency; outputs at temperature 0 stay the same",
    changes=("guest.engine", "guest.engine_start"),
    judge=judge,
)
