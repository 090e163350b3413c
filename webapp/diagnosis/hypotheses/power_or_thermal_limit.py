"""The GPUs are held back by their power limit or by heat.

A measurement that meets the software power cap says little of another load; heat and the hardware's own
slowdowns do.

Source: nvidia-smi manual, power limits and slowdown temperatures; NVML, clocks event reasons.
"""

from collections.abc import Iterator

from agents.facts.bench import TELEMETRY
from agents.facts.gpu import GPUS
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.missing import probes_for

AT_LIMIT = 0.97
FAR_BELOW = 0.8
HOT_CELSIUS = 85
"""Slowdown of data-center cards starts from 85–90 °C (nvidia-smi -q, GPU Target and Slowdown Temp)."""
THROTTLED_CLOCK = 0.7
SLOWDOWNS = frozenset({"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake"})
LEAST_SHARE = 0.1  # a change of clocks alone may show as a slowdown for one look (NVML)


def assess(case: Case) -> Verdict:
    seen, refs = case.situation.load, case.facts.refs(GPUS)
    held_back = tuple(_held_back(case.facts))
    if held_back and not (seen.busy and case.facts.newer(GPUS, TELEMETRY)):
        return Verdict(VerdictKind.SUPPORTED, held_back)
    if not seen.busy:
        missing = probes_for(case.facts, GPUS) or ("bench.telemetry",)
        return Verdict(VerdictKind.OPEN, missing=missing)
    for_: list[Claim] = []
    against: list[Claim] = []
    if seen.power_share is not None:
        text = f"under load the GPUs draw up to {seen.power_share * 100:.0f} % of their power limit"
        claim = Claim(text, refs, (seen.power_share, seen.power_share), Basis.MEASURED)
        (for_ if seen.power_share >= AT_LIMIT else against).append(claim)
    hot = seen.temperature_celsius is not None and seen.temperature_celsius >= HOT_CELSIUS
    slow = seen.clock_share is not None and seen.clock_share < THROTTLED_CLOCK
    if hot and slow:
        for_.append(measured_claim(f"under load a GPU is at {seen.temperature_celsius} °C with lowered clocks", refs))
    if for_:
        return Verdict(VerdictKind.SUPPORTED, tuple(for_), tuple(against))
    # A card that heat holds back draws little, too: without a temperature or a clock nothing is ruled out.
    watched = seen.temperature_celsius is not None or (seen.clock_share is not None and not slow)
    cool = watched and seen.power_share is not None and seen.power_share <= FAR_BELOW and not hot
    kind = VerdictKind.REFUTED if cool else VerdictKind.OPEN
    return Verdict(kind, (), tuple(against), () if cool else ("bench.telemetry",))


def _held_back(facts: Facts) -> Iterator[Claim]:
    """What slowed the clocks while something was measured, by GPU."""
    for gpu in facts.value(TELEMETRY) or ():
        reasons = [reason for reason in gpu.throttle_reasons if reason in SLOWDOWNS]
        share = (gpu.throttled_percent or 0) / 100
        if reasons and share >= LEAST_SHARE:
            text = f"while it was measured, {' and '.join(reasons)} held GPU {gpu.gpu} back"
            text += f" in {share * 100:.0f} % of the looks"
            yield Claim(text, facts.refs(TELEMETRY), (share, share), Basis.MEASURED)


hypothesis = Hypothesis(
    __name__,
    "The power limit or heat holds the GPUs back.",
    assess,
    f"“GPUs the driver lists” shows them busy with at most {FAR_BELOW * 100:.0f} % of their power limit "
    f"and below {HOT_CELSIUS} °C, and “Telemetry of each GPU” no slowdown.",
    rank=440,
    plain="The GPUs are held back by their power limit or by heat.",
    decided_by=("telemetry",),
)
