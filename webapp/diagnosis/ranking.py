"""Which of the supported hypotheses comes first: what is broken, then where the time goes, then P2P."""

from __future__ import annotations

from collections.abc import Mapping

from webapp.diagnosis.case import Verdict, VerdictKind

# Broken: no question of speed before these are settled. A setup that is wrong comes next, because it
# makes any figure of the step one of a wrong setup. Then what fills the step, measured; then what keeps
# the GPUs from each other; last what makes it slower than it need be.
ORDER = (
    "false_p2p_grant",
    "hang",
    "gpu_lost",
    "nvlink_fabric_down",
    "nccl_on_network",
    "pcie_link_degraded",
    "launch_bound",
    "memory_bandwidth_bound",
    "compute_bound",
    "power_or_thermal_limit",
    "p2p_unsupported_gpu",
    "kvm_hidden",
    "p2p_denied_no_clique",
    "p2p_denied_other",
    "nccl_level_too_low",
    "acs_detour",
    "communication_latency_bound",
    "communication_bandwidth_bound",
    "numa_misplacement",
    # By itself only a sign in a log: every GPU may have its space by now.
    "bar_space_shortage",
)
# A cause takes the place of its sign.
_CAUSE = {"gpu_lost": "bar_space_shortage"}


def supported(verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """Ids of the supported hypotheses, the one that comes first in front."""
    found = [name for name, verdict in verdicts.items() if verdict.kind is VerdictKind.SUPPORTED]
    rank = {name: float(place) for place, name in enumerate(ORDER)}
    for sign, cause in _CAUSE.items():
        if sign in found:
            rank[cause] = rank[sign] - 0.5
    return tuple(sorted(found, key=lambda name: (rank.get(name, len(ORDER)), name)))


def top_verdict(verdicts: Mapping[str, Verdict]) -> str | None:
    """The hypothesis a reader should hear of first; None when none is supported."""
    return next(iter(supported(verdicts)), None)
