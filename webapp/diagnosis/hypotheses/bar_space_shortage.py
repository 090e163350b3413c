"""There is not enough address space for the GPUs' BARs, so some GPUs get none.

Each GPU's BAR1 is its memory rounded up to a power of two; all of them and RAM must fit into the guest's
physical address bits. QEMU's default CPU types have 40 bits, 1 TiB.

Source: QEMU target/i386.
"""

from dataclasses import replace

from agents.facts import ReadingKind
from agents.facts.gpu import BAR_FAILURES, BARS, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.platform import MEMORY_MIB, PHYS_BITS
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis, refuted
from webapp.diagnosis.missing import probes_for
from webapp.diagnosis.situation.gpus import Listing

SOME_MIB = 1024
"""RAM when nobody said how much: every guest has at least this."""


def assess(case: Case) -> Verdict:
    """A log speaks of the boot it was written in: a driver that lists every GPU since has the last word."""
    facts, seen = case.facts, case.situation.listing
    logged, empty, bits = _logged(facts), _empty(facts), _too_few_bits(facts)
    missing = probes_for(facts, PHYS_BITS, BARS)
    missing += () if facts.kind(BAR_FAILURES) is ReadingKind.ABSENT else probes_for(facts, BAR_FAILURES)
    if seen and seen.every:
        return _since_listed(facts, seen, missing)
    short = seen.claim if seen and seen.short else None
    lost = (replace(short, text=f"{short.text}; lack of address space is one cause"),) if short else ()
    for_ = (*logged, *empty, *bits, *lost)
    if logged or empty or (lost and bits):
        return Verdict(VerdictKind.SUPPORTED, for_, (), missing)
    regions = facts.value(BARS)
    clean = facts.kind(BAR_FAILURES) is ReadingKind.ABSENT or bool(regions)
    if clean and not for_:
        return refuted(measured_claim("no region went without an address", facts.refs(BAR_FAILURES, BARS)))
    return Verdict(VerdictKind.OPEN, for_, (), missing)


def _since_listed(facts: Facts, seen: Listing, missing: tuple[str, ...]) -> Verdict:
    """What was read of the regions before that is history; what was read after it is not."""
    logged, bits = _logged(facts), _too_few_bits(facts)
    log = facts.best(BAR_FAILURES)
    empty = () if facts.newer(GPU_COUNT_SMI, BARS) else _empty(facts)
    text = f"{seen.claim.text}, and it takes none whose regions got no address"
    against = (Claim(text, seen.evidence),)
    if log and log.epoch > seen.driver.epoch and logged:
        before = (replace(seen.claim, text=f"{seen.claim.text}, by an earlier output"),)
        return Verdict(VerdictKind.SUPPORTED, (*logged, *empty, *bits), before, missing)
    if empty:
        return Verdict(VerdictKind.SUPPORTED, (*empty, *logged, *bits), (seen.claim,), missing)
    if bits or (logged and not seen.follows(log)):
        return Verdict(VerdictKind.OPEN, (*logged, *bits), (seen.claim,), missing)
    then = tuple(replace(claim, text=f"before that, {claim.text}") for claim in logged)
    return Verdict(VerdictKind.REFUTED, then, against)


def _logged(facts: Facts) -> tuple[Claim, ...]:
    failures = facts.value(BAR_FAILURES)
    if not failures:
        return ()
    regions = f"{len(failures)} region{'s' if len(failures) > 1 else ''}"
    text = f"the kernel could not place {regions}: {failures[0].text[:120]}"
    return (measured_claim(text, facts.refs(BAR_FAILURES)),)


def _empty(facts: Facts) -> tuple[Claim, ...]:
    empty = sorted({bar.pci_address for bar in facts.value(BARS) or () if bar.size_mib == 0})
    if not empty:
        return ()
    have = "GPU has" if len(empty) == 1 else "GPUs have"
    text = f"{len(empty)} {have} a region without an address: {', '.join(empty[:4])}"
    return (measured_claim(text, facts.refs(BARS)),)


def _too_few_bits(facts: Facts) -> tuple[Claim, ...]:
    """RAM plus every BAR1 against the address bits; a lower limit, firmware gives MMIO only a part."""
    return facts.exception(_needed)


def _needed(facts: Facts) -> tuple[Claim, ...]:
    bits, memory, gpus = facts.value(PHYS_BITS), facts.value(MEMORY_MIB), facts.value(GPUS) or ()
    vram = max((gpu.vram_mib for gpu in gpus if gpu.vram_mib), default=0)
    count = max(facts.value(GPU_COUNT_PCI) or 0, len(gpus))
    if not bits or not vram or not count:
        return ()
    needed_mib = count * (1 << (vram - 1).bit_length()) + (memory or SOME_MIB)
    if needed_mib <= 1 << (bits - 20):
        return ()
    text = (
        f"{count} GPUs and RAM need {needed_mib / 1024 / 1024:.2f} TiB of addresses; {bits} bits "
        f"reach {(1 << bits) / 2**40:.0f} TiB"
    )
    refs = facts.refs(PHYS_BITS, GPUS, MEMORY_MIB, GPU_COUNT_PCI)
    return (Claim(text, refs, (needed_mib / 2**20, needed_mib / 2**20), Basis.ESTIMATED),)


hypothesis = Hypothesis(
    __name__,
    "Address space is short for the GPUs’ BARs.",
    assess,
    "“GPUs the driver lists” has every GPU of “PCI devices” by now, or no region went without an "
    "address in “Kernel log” or “GPU address regions”.",
    rank=710,
    plain="The machine does not give every GPU the address space that it needs.",
    headline="Some of a device’s memory got no address space: GPUs may be missing.",
    decided_by=("gpu_count",),
    causes=("gpu_lost",),
)
