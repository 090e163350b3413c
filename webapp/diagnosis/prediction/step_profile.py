"""A profile of the engine in place of the estimate: it splits the step that it was taken at.

Kernels of the collectives also spin while they wait for a slower GPU (NCCL 2.30.7, src/device), so
their time is the most that communication takes, and not the least.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.facts.bench import PROFILE, Profile
from webapp.diagnosis.claim import EvidenceRef, Range
from webapp.diagnosis.facts import Facts

# A profiler slows a step, and one that is off by more than this was taken under another load.
APART = 2.0
WAITING = (
    "communication is at most the collectives’ time in the engine’s profile, in which GPUs also wait for each other"
)
NO_STEP_FITS = "the engine’s profile is of another load than any observed here: left out"


@dataclass(frozen=True, slots=True)
class Split:
    """Milliseconds of one step by kind of kernel ("nccl", "attention", "moe", "other", "gaps")."""

    parts: dict[str, Range]
    evidence: tuple[EvidenceRef, ...]

    @property
    def nccl(self) -> Range:
        return self.parts["nccl"]

    @property
    def total(self) -> Range:
        return sum(low for low, _ in self.parts.values()), sum(h for _, h in self.parts.values())


def split_of(facts: Facts, step: Range, others: Sequence[Range]) -> Split | None:
    """The profile's split of this step; None without a profile or where it fits another step better.

    others: the steps at the other observed concurrencies.
    """
    profile = facts.value(PROFILE)
    if profile is None or profile.step_ms <= 0:
        return None
    here = _apart(profile, step)
    if here > APART or any(_apart(profile, other) < here for other in others):
        return None
    low, high = _within(profile, step[0]), _within(profile, step[1])
    parts = {name: (min(low[name], high[name]), max(low[name], high[name])) for name in low}
    return Split(parts, facts.refs(PROFILE))


def _within(profile: Profile, step_ms: float) -> dict[str, float]:
    """The parts as they are without the profiler. It costs the host time between launches and no kernel
    becomes slower, so the gaps give way first (H200, torch 2.11: a step of 0.33 ms is recorded as 0.59, of
    which its kernels take 0.16; bench/gpu/load_and_trace.py, 2026-11-30)."""
    busy = profile.kernels_ms + profile.nccl_ms
    total = min(step_ms, profile.step_ms)
    scale = min(1.0, total / busy) if busy else 0.0
    return {
        "nccl": profile.nccl_ms * scale,
        "attention": profile.attention_ms * scale,
        "moe": profile.moe_ms * scale,
        "other": profile.other_ms * scale,
        "gaps": max(0.0, total - busy),
    }


def fits_none(facts: Facts, steps: Sequence[Range]) -> bool:
    profile = facts.value(PROFILE)
    if profile is None or not steps:
        return False
    return profile.step_ms <= 0 or all(_apart(profile, step) > APART for step in steps)


def _apart(profile: Profile, step: Range) -> float:
    """The factor between the profile's step and the nearer end of the range; 1 inside it."""
    if step[0] <= 0:
        return float("inf")
    return max(1.0, profile.step_ms / step[1], step[0] / profile.step_ms)
