"""There is not enough address space for the GPUs' BARs, so some GPUs get none.

Each GPU's BAR1 is its memory rounded up to a power of two; all of them and RAM must fit into the
guest's physical address bits. QEMU's default CPU types have 40 bits, 1 TiB (QEMU target/i386).
"""

from __future__ import annotations

from agents.facts import ReadingKind
from agents.facts.gpu import BAR_FAILURES, BARS, GPU_COUNT_PCI, GPU_COUNT_SMI, GPUS
from agents.facts.platform import MEMORY_MIB, PHYS_BITS
from webapp.diagnosis.asking import asks
from webapp.diagnosis.case import Case, Verdict, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypothesis import Hypothesis

SOME_MIB = 1024
"""RAM when nobody said how much: every guest has at least this."""


def assess(case: Case) -> Verdict:
    facts = case.facts
    for_ = [*_failures(facts), *_too_few_bits(facts)]
    missing = asks(facts, PHYS_BITS, BARS)
    missing += () if facts.kind(BAR_FAILURES) is ReadingKind.ABSENT else asks(facts, BAR_FAILURES)
    listed, on_bus = facts.value(GPU_COUNT_SMI), facts.value(GPU_COUNT_PCI)
    lost = listed is not None and on_bus is not None and listed < on_bus
    if lost:
        text = f"the driver lists {listed} of {on_bus} GPUs; lack of address space is one cause"
        refs = facts.refs(GPU_COUNT_SMI, GPU_COUNT_PCI)
        for_.append(Claim(text, refs, None, Basis.INFERRED))
    if _failures(facts) or (lost and _too_few_bits(facts)):
        return Verdict(VerdictKind.SUPPORTED, tuple(for_), _all_listed(facts), missing)
    regions = facts.value(BARS)
    clean = facts.kind(BAR_FAILURES) is ReadingKind.ABSENT or bool(regions)
    if clean and not for_:
        text = "no region went without an address"
        claim = Claim(text, facts.refs(BAR_FAILURES, BARS), None, Basis.MEASURED)
        return Verdict(VerdictKind.REFUTED, (), (claim,))
    return Verdict(VerdictKind.OPEN, tuple(for_), (), missing)


def _all_listed(facts: Facts) -> tuple[Claim, ...]:
    """A log speaks of the moment it was written: the GPUs may have their space by now."""
    listed, on_bus = facts.value(GPU_COUNT_SMI), facts.value(GPU_COUNT_PCI)
    if not listed or listed != on_bus:
        return ()
    text = f"all {listed} GPUs on the bus are listed by the driver now"
    refs = facts.refs(GPU_COUNT_SMI, GPU_COUNT_PCI)
    return (Claim(text, refs, None, Basis.MEASURED),)


def _failures(facts: Facts) -> list[Claim]:
    found = []
    failures, bars = facts.value(BAR_FAILURES), facts.value(BARS)
    if failures:
        text = f"the kernel could not place {len(failures)} regions: {failures[0].text[:120]}"
        found.append(Claim(text, facts.refs(BAR_FAILURES), None, Basis.MEASURED))
    empty = sorted({bar.pci_address for bar in bars or () if bar.size_mib == 0})
    if empty:
        text = f"{len(empty)} GPUs have a region without an address: {', '.join(empty[:4])}"
        found.append(Claim(text, facts.refs(BARS), None, Basis.MEASURED))
    return found


def _too_few_bits(facts: Facts) -> list[Claim]:
    """RAM plus every BAR1 against the address bits; a lower limit, firmware gives MMIO only a part."""
    bits, memory, gpus = facts.value(PHYS_BITS), facts.value(MEMORY_MIB), facts.value(GPUS) or ()
    vram = max((gpu.vram_mib for gpu in gpus if gpu.vram_mib), default=0)
    count = max(facts.value(GPU_COUNT_PCI) or 0, len(gpus))
    if not bits or not vram or not count:
        return []
    needed_mib = count * (1 << (vram - 1).bit_length()) + (memory or SOME_MIB)
    if needed_mib <= 1 << (bits - 20):
        return []
    text = (
        f"{count} GPUs and RAM need {needed_mib / 1024 / 1024:.2f} TiB of addresses; {bits} bits "
        f"reach {(1 << bits) / 2**40:.0f} TiB"
    )
    refs = facts.refs(PHYS_BITS, GPUS)
    return [Claim(text, refs, (needed_mib / 2**20, needed_mib / 2**20), Basis.ESTIMATED)]


hypothesis = Hypothesis(__name__, "Address space is short for the GPUs’ BARs.", assess)
