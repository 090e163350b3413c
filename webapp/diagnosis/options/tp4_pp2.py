"""Half the tensor-parallel size and twice the pipeline stages.

At concurrency 1 the stages run one after the other: each GPU reads twice as much for half the layers.

Source: Megatron-LM, Narayanan et al. 2021.
"""

from agents.facts.bench import COPY
from agents.facts.gpu import GPUS
from agents.facts.workload import MODEL, PARALLELISM
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because
from webapp.diagnosis.prediction.layouts import comm_per_token_ms
from webapp.diagnosis.prediction.memory_fit import too_large
from webapp.diagnosis.reference.curves import ring_steps
from webapp.diagnosis.wording import span

SOURCE = "Megatron-LM, Narayanan et al. 2021"


def judge(case: Case) -> Advice:
    facts, parallel = case.facts, case.facts.value(PARALLELISM)
    if parallel is None:
        text = "the tensor-parallel size in use was not given, so it is not known whether it can be halved"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    if parallel.tp < 4 or parallel.tp % 2:
        text = "needs a tensor-parallel size that can be halved"
        return advise(OptionStatus.BLOCKED, because(text, SOURCE, facts.refs(PARALLELISM)))
    room = facts.exception(lambda facts: too_large(facts, parallel.tp * parallel.pp))
    if room:
        return advise(OptionStatus.BLOCKED, because(room.why, SOURCE, facts.refs(MODEL, GPUS)))
    half = parallel.tp // 2
    text = (
        "single stream is likely slower: weight reads per token double, while "
        f"{ring_steps(half)} ring steps take the place of {ring_steps(parallel.tp)}"
    )
    refs = facts.refs(PARALLELISM, COPY)
    before, after = (comm_per_token_ms(case.situation, tp) for tp in (parallel.tp, half))
    if before and after:
        text += (
            f"; communication {span(before)} ms a token becomes {span(after)} ms. "
            "With many requests throughput can improve"
        )
        refs += facts.refs(GPUS)
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE, refs, after))


option = Option(
    __name__,
    title="Half the tensor parallel size, two pipeline stages (TP4+PP2)",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="start the engine with the old sizes",
    verified_by="bench.serving at concurrency 1 and at the highest, five runs each",
    changes=("guest.engine", "guest.engine_start", "user.parallelism"),
    judge=judge,
)
