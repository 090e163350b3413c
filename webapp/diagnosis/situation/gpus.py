"""The GPUs: how many the driver lists beside those on the bus, and what a snapshot shows of their load.

Source: NVIDIA open kernel modules 595.45, nv.c: the driver takes no GPU whose registers or
BAR1 got no address.
"""

from dataclasses import dataclass

from agents.facts.bench import SERVING
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY
from agents.facts.workload import OBSERVED
from webapp.diagnosis.claim import Basis, Claim, EvidenceRef
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.reference.curves import link_share
from webapp.diagnosis.reference.gpus import gpu_spec

BUSY_PERCENT = 90


@dataclass(frozen=True, slots=True)
class Listing:
    """listed: GPUs of nvidia-smi. on_bus: NVIDIA GPUs on the PCI bus, by the newest look at it.

    together: both were read between the same changes. driver: the reading that lists. whole: nothing shows
    that the list is a part.
    """

    listed: int
    on_bus: int
    together: bool
    driver: Sourced
    whole: bool
    evidence: tuple[EvidenceRef, ...]

    @property
    def every(self) -> bool:
        return 0 < self.listed == self.on_bus

    @property
    def short(self) -> bool:
        """Fewer than are there: only where the bus was read in the same state, and the list is whole."""
        return self.together and self.whole and self.listed < self.on_bus

    @property
    def claim(self) -> Claim:
        if self.every:
            text = f"all {self.listed} GPUs on the bus are listed by the driver"
        else:
            text = f"the driver lists {self.listed} of the {self.on_bus} GPUs on the bus"
        return Claim(text, self.evidence, None, Basis.MEASURED)

    def follows(self, item: Sourced | None) -> bool:
        """Whether the driver listed them later than this was read."""
        return item is None or self.driver.when > item.when


def listing(facts: Facts) -> Listing | None:
    """None until both were counted."""
    if facts.peek(GPU_COUNT_SMI) is None or facts.peek(GPU_COUNT_PCI) is None:
        facts.value(GPU_COUNT_PCI if facts.peek(GPU_COUNT_PCI) is None else GPU_COUNT_SMI)
        return None
    driver, bus = facts.best(GPU_COUNT_SMI), facts.best(GPU_COUNT_PCI)
    listed, on_bus = facts.value(GPU_COUNT_SMI), facts.value(GPU_COUNT_PCI)
    if driver is None or bus is None or listed is None or on_bus is None:
        return None
    refs = facts.refs(GPU_COUNT_SMI, GPU_COUNT_PCI)
    longer = facts.exception(lambda facts: _in_matrices_since(facts, driver) > listed)
    whole = driver.reading.complete and not longer
    return Listing(listed, on_bus, driver.epoch == bus.epoch, driver, whole, refs)


def _in_matrices_since(facts: Facts, driver: Sourced) -> int:
    """The driver’s own matrices name every GPU that it has: one that was read later knows better."""
    matrices = (item for fact in (P2P_READ, P2P_WRITE, TOPOLOGY) for item in facts.all(fact))
    values = (item.reading.value for item in matrices if item.when > driver.when)
    return max((len(value.gpus) for value in values if value), default=0)


@dataclass(frozen=True, slots=True)
class Load:
    """Over the GPUs that report it. *_share: 0…1. None: no GPU reports it.

    power_share: the highest draw over limit. busy_percent: the lowest utilisation.
    """

    busy_percent: int | None = None
    power_share: float | None = None
    temperature_celsius: int | None = None
    clock_share: float | None = None

    @property
    def busy(self) -> bool:
        return self.busy_percent is not None and self.busy_percent >= BUSY_PERCENT


def load(facts: Facts) -> Load:
    gpus = [gpu for gpu in facts.value(GPUS) or () if not gpu.lost]
    busy = [g.utilisation_percent for g in gpus if g.utilisation_percent is not None]
    power = [g.power_w / g.power_limit_w for g in gpus if g.power_w and g.power_limit_w]
    heat = [g.temperature_celsius for g in gpus if g.temperature_celsius is not None]
    clocks = [g.sm_clock_mhz / g.sm_clock_max_mhz for g in gpus if g.sm_clock_mhz and g.sm_clock_max_mhz]
    return Load(min(busy, default=None), max(power, default=None), max(heat, default=None), min(clocks, default=None))


def tokens_flow(facts: Facts) -> bool | None:
    """Whether output was seen at all; None: nobody said."""
    rates = [row.output_tokens_per_s for row in facts.value(SERVING) or ()]
    known_rates = [r for r in rates if r is not None]
    known_rates += [o.output_tokens_per_s[1] for o in facts.value(OBSERVED) or () if o.output_tokens_per_s]
    return max(known_rates) > 0 if known_rates else None


@dataclass(frozen=True, slots=True)
class Link:
    """The GPUs' PCIe link at its best."""

    gen: int | None
    width: int | None

    @property
    def share(self) -> float:
        return link_share(self.gen, self.width)

    def __str__(self) -> str:
        """ "Gen4 x16"; the fastest where it was not read, as in `link_share`."""
        return f"Gen{self.gen or 5} x{self.width or 16}"


def link(facts: Facts) -> Link:
    """What the GPUs report as their maximum, else what the model is specified with."""
    gpus = facts.value(GPUS) or ()
    gens = [gpu.pcie_gen_max for gpu in gpus if gpu.pcie_gen_max]
    widths = [gpu.pcie_width_max for gpu in gpus if gpu.pcie_width_max]
    specs = [spec.pcie_gen for gpu in gpus if (spec := gpu_spec(gpu.name))]
    return Link(min(gens or specs, default=None), min(widths, default=None))
