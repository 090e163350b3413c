"""CUDA graphs: one launch a step in place of thousands.

Source: SGLang and vLLM server arguments, 2026.
"""

from agents.facts.nccl import ENGINE
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

OFF = frozenset({"disable-cuda-graph", "enforce-eager"})
SOURCE = "SGLang and vLLM server arguments, 2026"


def judge(case: Case) -> Advice:
    engine, refs = case.facts.value(ENGINE), case.facts.refs(ENGINE)
    if engine is None:
        text = "whether graphs are on was not read; without them every kernel costs a launch"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    off = sorted({flag.lstrip("-").replace("_", "-") for flag in engine.flags} & OFF)
    if off:
        text = f"{engine.name} runs with --{off[0]}: graphs are off"
        return advise(OptionStatus.RECOMMENDED, seen(text, refs, SOURCE))
    text = f"no flag of {engine.name} switches graphs off; whether this batch was captured is open"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE, refs))


option = Option(
    __name__,
    title="Serve with CUDA graphs, and check that the batch size was captured",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="put the flag back and restart the engine",
    verified_by="bench.profile: gaps between kernels shrink",
    changes=("guest.engine", "guest.engine_start"),
    judge=judge,
    scripted=True,
)
