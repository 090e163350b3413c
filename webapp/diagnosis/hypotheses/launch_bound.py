"""The GPUs wait for the processor: gaps between kernels, which CUDA graphs would close.

Flags: SGLang `--disable-cuda-graph` and vLLM `--enforce-eager` launch every kernel from the host.

Source: SGLang and vLLM server arguments; CUDA programming guide, CUDA graphs.
"""

from agents.facts.bench import PROFILE
from agents.facts.kernels import LAUNCH, Figures, Work
from agents.facts.nccl import ENGINE
from agents.facts.workload import MODEL, OBSERVED
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation.own_machine import unnamed_cards
from webapp.diagnosis.wording import span

GRAPHS_OFF = ("disable-cuda-graph", "enforce-eager")
MUCH = 0.3
LITTLE = 0.1


def assess(case: Case) -> Verdict:
    facts, profile = case.facts, case.facts.value(PROFILE)
    for_ = _graphs_off(case)
    if profile is not None:
        share = profile.share(profile.gaps_ms)
        text = f"gaps between kernels take {share * 100:.0f} % of the profiled step"
        text += unnamed_cards(facts, PROFILE)
        claim = Claim(text, facts.refs(PROFILE), (share, share), Basis.MEASURED)
        gaps = (profile.gaps_ms, profile.gaps_ms)
        if share >= MUCH:
            return Verdict(VerdictKind.SUPPORTED, (claim, *for_), share_ms=gaps)
        kind = VerdictKind.REFUTED if share <= LITTLE else VerdictKind.OPEN
        return Verdict(kind, tuple(for_), (claim,), share_ms=gaps)
    share_ms, bound = None, case.bound_with("unexplained_ms")
    if bound and bound.unexplained_ms:
        share_ms = (0.0, bound.unexplained_ms[1])
        text = (
            f"up to {span((share_ms[1],) * 2)} ms of the step are neither weight reads nor communication; "
            "launch gaps are one candidate"
        )
        for_.append(Claim(text, bound.evidence or facts.refs(OBSERVED), bound.unexplained_ms, Basis.ESTIMATED))
        for_ += _started_a_layer(case, share_ms[1])
    return Verdict(VerdictKind.OPEN, tuple(for_), (), probes_for(facts, PROFILE, ENGINE, LAUNCH), share_ms)


def _started_a_layer(case: Case, unexplained_ms: float) -> list[Claim]:
    """How many operations the processor can start in that time: what launches alone would need. How many
    the engine does start, only its profile tells."""
    launches, model = case.facts.value(LAUNCH), case.facts.value(MODEL)
    one = launches.figures(Work.OPERATION, "no_wait") if launches else None
    if not launches or not one or not one.time_us or not model or not model.layers:
        return []
    count = unexplained_ms * 1e3 / one.time_us / model.layers
    varies = f" (it varies, {one.ci_low_us:.1f} to {one.ci_high_us:.1f})" if _unsteady(one) else ""
    graph_us = launches.time_us(Work.OPERATION, "graph")
    graph = f", and {graph_us:.1f} µs of the GPU in a CUDA graph" if graph_us else ""
    text = (
        f"starting one small operation takes {one.time_us:.1f} µs of this processor{varies}{graph}: "
        f"launches alone explain {span((unexplained_ms,) * 2)} ms only if the engine starts {count:.0f} "
        "a layer without graphs"
    )
    return [Claim(text, case.facts.refs(LAUNCH, MODEL), (0.0, unexplained_ms), Basis.ESTIMATED)]


def _unsteady(figures: Figures) -> bool:
    return bool(figures.unstable and figures.ci_low_us and figures.ci_high_us)


def _graphs_off(case: Case) -> list[Claim]:
    engine = case.facts.value(ENGINE)
    flags = [f.lstrip("-").replace("_", "-") for f, v in engine.flags.items() if _is_on(v)] if engine else []
    disabling = [flag for flag in flags if flag in GRAPHS_OFF]
    text = "the engine runs with --{}: every kernel is launched from the host"
    return [measured_claim(text.format(f), case.facts.refs(ENGINE)) for f in disabling]


def _is_on(value: str) -> bool:
    return value.strip().lower() not in {"false", "0", "no", "off"}


hypothesis = Hypothesis(
    __name__,
    "The GPUs wait for kernel launches by the processor.",
    assess,
    f"“The engine’s own profile of a step” shows gaps between kernels in at most {LITTLE * 100:.0f} % "
    "of it; “Launches and small products” alone cannot.",
    rank=410,
    plain="The GPUs spend much of their time waiting for the processor to give them work.",
    decided_by=("engine_profile",),
    first_guess=5,
)
