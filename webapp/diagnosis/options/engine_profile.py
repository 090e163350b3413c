"""A profile of some decode steps: the only test that splits the whole step.

SGLang and vLLM write a torch profiler trace of a running server on POST /start_profile.

Source: SGLang and vLLM, POST /start_profile, 2026.
"""

from agents.facts.bench import PROFILE
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.option import Option, advise, because, seen
from webapp.diagnosis.wording import span


def judge(case: Case) -> Advice:
    if case.facts.value(PROFILE) is not None:
        return advise(OptionStatus.DONE, seen("a profile of a step was read", case.facts.refs(PROFILE), ""))
    bound = case.bound_with("step_ms", "unexplained_ms")
    if bound and bound.step_ms and bound.unexplained_ms:
        text = (
            f"{span(bound.unexplained_ms)} ms of a step of {span(bound.step_ms)} ms have no explanation "
            "yet; a profile says what they are"
        )
        return advise(OptionStatus.RECOMMENDED, Claim(text, bound.evidence, bound.unexplained_ms, Basis.ESTIMATED))
    text = "utilisation and power cannot tell kernels, waiting and gaps apart; a profile can"
    return advise(OptionStatus.RECOMMENDED, because(text, "NVIDIA Nsight Systems user guide"))


option = Option(
    __name__,
    title="Profile the engine for 20 decode steps",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.NONE,
    rollback="nothing to undo",
    verified_by="bench.profile: NCCL, attention, MoE, other kernels and gaps add up to the step",
    judge=judge,
)
