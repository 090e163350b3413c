"""A GPU's PCIe link is slower or narrower than it could be.

Links slow down when idle, so a lower generation counts only under load: in a snapshot of a busy GPU, or as
the best that was seen all along a measurement. The width does not change. The GPU's own link is real in a VM
too, the emulated ports' are not.

Source: nvidia-smi manual, PCIe.
"""

from dataclasses import replace

from agents.facts.bench import TELEMETRY
from agents.facts.gpu import GPUS, Gpu
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation.gpus import BUSY_PERCENT

LEAST_LOOKS = 5  # two seconds of a measurement, in which a link has long woken up


def assess(case: Case) -> Verdict:
    facts = case.facts
    gpus = [_watched(gpu, facts) for gpu in facts.value(GPUS) or () if not gpu.lost]
    refs = facts.refs(GPUS, TELEMETRY)
    narrow = [gpu for gpu in gpus if _below(gpu.pcie_width, gpu.pcie_width_max)]
    slow = [gpu for gpu in gpus if _busy(gpu) and _below(gpu.pcie_gen, gpu.pcie_gen_max)]
    for_ = [measured_claim(_text(g), refs) for g in dict.fromkeys(narrow + slow)]
    if for_:
        return Verdict(VerdictKind.SUPPORTED, tuple(for_), (), ("bench.copy",))
    if gpus and all(_full(gpu) for gpu in gpus):
        return refuted(measured_claim(f"all {len(gpus)} links run at their full generation and width", refs))
    return Verdict(VerdictKind.OPEN, missing=probes_for(facts, GPUS) or ("bench.telemetry",))


def _watched(gpu: Gpu, facts: Facts) -> Gpu:
    """The GPU as it was at work, where a measurement looked at it often enough, and not before a change."""
    if facts.newer(GPUS, TELEMETRY):
        return gpu
    for seen in facts.value(TELEMETRY) or ():
        if seen.gpu == str(gpu.index) and seen.pcie_gen and seen.samples >= LEAST_LOOKS:
            width = seen.pcie_width or gpu.pcie_width
            return replace(gpu, pcie_gen=seen.pcie_gen, pcie_width=width, utilisation_percent=100)
    return gpu


def _below(now: int | None, most: int | None) -> bool:
    return now is not None and most is not None and now < most


def _full(gpu: Gpu) -> bool:
    known = None not in (gpu.pcie_gen, gpu.pcie_gen_max, gpu.pcie_width, gpu.pcie_width_max)
    return known and not _below(gpu.pcie_gen, gpu.pcie_gen_max)


def _busy(gpu: Gpu) -> bool:
    return (gpu.utilisation_percent or 0) >= BUSY_PERCENT


def _text(gpu: Gpu) -> str:
    return (
        f"GPU {gpu.index}’s link runs at generation {gpu.pcie_gen} x{gpu.pcie_width}, "
        f"of {gpu.pcie_gen_max} x{gpu.pcie_width_max}"
    )


hypothesis = Hypothesis(
    __name__,
    "A PCIe link runs below its capability.",
    assess,
    "“GPUs the driver lists”, or “Telemetry of each GPU” during a measurement, shows every link at "
    "its full generation and width.",
    rank=310,
    plain="At least one GPU’s connection runs slower than it could.",
    headline="A GPU’s PCIe link runs below what it can do.",
    decided_by=("telemetry",),
    first_guess=7,
)
