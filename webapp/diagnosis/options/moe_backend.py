"""Which kernels compute the experts; some fall back to slow ones on new chips."""

from __future__ import annotations

from agents.facts.bench import PROFILE
from webapp.diagnosis.advising import advise, because
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.option import Option

# From a third of the step on it is worth a try before anything else.
MUCH = 1 / 3
SOURCE = "SGLang and vLLM server arguments, 2026"


def judge(case: Case) -> Advice:
    profile = case.facts.value(PROFILE)
    if profile is None:
        text = "the profile comes first: it says what MoE kernels cost"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    kernels_ms = profile.nccl_ms + profile.attention_ms + profile.moe_ms + profile.other_ms
    step_ms = kernels_ms + profile.gaps_ms
    share = profile.moe_ms / step_ms if step_ms else 0.0
    text = f"MoE kernels take {share * 100:.0f} % of the profiled step"
    claim = Claim(text, case.facts.refs(PROFILE), (share, share), Basis.MEASURED)
    if share < MUCH:
        return advise(OptionStatus.POSSIBLE, claim)
    gain = 1 / (1 - share) if share < 1 else None
    return advise(OptionStatus.RECOMMENDED, claim, effect=(1.0, gain) if gain else None)


option = Option(
    __name__,
    title="Try the other MoE backends",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    isolation_cost="none",
    rollback="put the flag back and restart the engine",
    verified_by="bench.profile: MoE time falls; outputs at temperature 0 stay the same",
    changes=(
        "guest.engine",
        "guest.engine_start",
    ),
    judge=judge,
)
