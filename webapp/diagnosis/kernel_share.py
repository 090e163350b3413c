"""What other kernels for one part of a step could bring, by that part's share of the profiled step."""

from __future__ import annotations

from agents.facts.bench import PROFILE
from webapp.diagnosis.advising import advise, because
from webapp.diagnosis.case import Advice, Case, OptionStatus
from webapp.diagnosis.claim import Basis, Claim

# From a third of the step on it is worth a try before anything else.
MUCH = 1 / 3
SOURCE = "SGLang and vLLM server arguments, 2026"


def by_share(case: Case, part: str) -> Advice:
    """part: "attention" or "MoE". At most what is left if these kernels took no time at all."""
    profile = case.facts.value(PROFILE)
    if profile is None:
        text = f"the profile comes first: it says what {part} kernels cost"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE))
    part_ms = profile.moe_ms if part == "MoE" else profile.attention_ms
    kernels_ms = profile.nccl_ms + profile.attention_ms + profile.moe_ms + profile.other_ms
    step_ms = kernels_ms + profile.gaps_ms
    share = part_ms / step_ms if step_ms else 0.0
    text = f"{part} kernels take {share * 100:.0f} % of the profiled step"
    claim = Claim(text, case.facts.refs(PROFILE), (share, share), Basis.MEASURED)
    if share < MUCH:
        return advise(OptionStatus.POSSIBLE, claim)
    gain = 1 / (1 - share) if share < 1 else None
    return advise(OptionStatus.RECOMMENDED, claim, effect=(1.0, gain) if gain else None)
