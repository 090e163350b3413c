"""What changed between before and after, and what was lost on the way.

Source: the outputs before and after, compared; Linux PCI core, BAR assignment.
"""

from collections.abc import Sequence
from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.bench import ALLREDUCE, COPY, DELIVERY, PROFILE, CopyResult
from agents.facts.gpu import BAR_FAILURES, CLIQUE_CAPABILITY, FABRIC, GPU_COUNT_PCI, GPUS, PCI_GPUS
from agents.facts.host import HOST_CMDLINE
from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY
from agents.facts.platform import MACHINE_TYPE, VIRT_KIND
from agents.facts.vm import QEMU_COMMANDS, VM_MACHINE, VMS
from webapp.diagnosis.case import Case, Finding
from webapp.diagnosis.claim import Basis, Claim, measured_claim
from webapp.diagnosis.compare.copies import compare_copies
from webapp.diagnosis.compare.effects import Comparison
from webapp.diagnosis.compare.p2p_status import p2p_status
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.option import because
from webapp.diagnosis.situation.dedupe import distinct_runs
from webapp.diagnosis.wording import called

FIX_ORDER = (
    "in this order: physical address bits (CPU type host), the 64-bit window (pci-hole64-size, or "
    "OVMF’s X-PciMmio64Mb), pci=realloc in the guest, pci=nocrs only as the last resort"
)


def gpus_lost_to_space(case: Case) -> Finding | None:
    """The driver cannot use a GPU whose region got no address."""
    facts = case.facts
    lost, total = _without_space(facts), facts.value(GPU_COUNT_PCI) or 0
    if not lost or lost > total:
        return None
    refs, seen = facts.refs(BAR_FAILURES, GPU_COUNT_PCI), case.situation.listing
    back = bool(seen and seen.every and seen.follows(facts.best(BAR_FAILURES)))
    text = f"{lost} of {total} GPUs were lost: their regions got no MMIO address space"
    claims = [because(text, "Linux PCI core, BAR assignment", refs)]
    if back and seen:
        claims.append(measured_claim(f"all {total} are listed again by a later output", seen.evidence))
    fix = f"should it come back, {FIX_ORDER}" if back else FIX_ORDER
    claims.append(because(fix, "QEMU pci-hole64-size; EDK2 MemDetect.c", refs))
    return Finding("gpus_lost_to_space", "info" if back else "critical", tuple(claims))


def _without_space(facts: Facts) -> int:
    """GPUs of which a region got no address, by the kernel log."""
    gpus = {gpu.pci_address for gpu in facts.value(PCI_GPUS) or ()}
    return len(gpus & {failure.pci_address for failure in facts.value(BAR_FAILURES) or ()})


def status_after(case: Case) -> Finding | None:
    change = p2p_status(case.facts)
    if change is None or not change.changes:
        return None
    what = ", ".join(change.changes)
    seen = ", ".join(change.after)
    held = "held" if change.held else "did not hold"
    text = f"predicted for {what}: P2P status {change.predicted}; observed {seen}: {held}"
    claims = [measured_claim(text, change.evidence)]
    if change.held and change.unchanged:
        claims.append(Claim(f"the decision for {what} closes as “no effect on P2P”", change.evidence))
    return Finding("p2p_status_after", "info", tuple(claims))


def copies_after(case: Case) -> Finding | None:
    result = copies_compared(case)
    if result is None:
        return None
    name = {"cannot_tell": "cannot tell"}.get(result.outcome, result.outcome)
    refs = case.facts.refs(COPY)
    old = case.facts.before(COPY)
    refs = (old.refs[:2] if old else ()) + refs
    changes = [effect.speedup - 1 for effect in result.effects]
    text = f"copies before and after: {name} ({result.why})"
    if changes:
        text += f"; the sizes differ by {min(changes) * 100:+.1f} % to {max(changes) * 100:+.1f} %"
    claims = [measured_claim(text, refs)]
    if result.spread is not None:
        inside = max((abs(change) for change in changes), default=0.0) <= result.spread
        text = f"two runs of the same state differ by up to {result.spread * 100:.1f} % themselves" + (
            ": the differences are inside that spread" if inside else ""
        )
        claims.append(Claim(text, refs, (0.0, result.spread), Basis.MEASURED))
    if result.excluded:
        seen = (1 + min(changes, default=0.0), 1 + max(changes, default=0.0))
        claims.append(Claim(result.excluded, refs, seen, Basis.INFERRED))
    return Finding("copies_after", "info", tuple(claims))


def copies_compared(case: Case) -> Comparison | None:
    """The newest epoch's copies against those of the epoch before it; None without both."""
    known = distinct_runs(s for s in case.facts.all(COPY) if s.reading.kind is ReadingKind.KNOWN)
    newest = _of_first_epoch(known)
    older = _of_first_epoch([s for s in known if s.epoch < known[0].epoch])
    if not newest or not older:
        return None
    return compare_copies(older[0], newest[0], more_before=older[1:], more_after=newest[1:])


def _of_first_epoch(known: Sequence[Sourced]) -> list[CopyResult]:
    """known is sorted, the newest epoch first."""
    return [s.reading.value for s in known if s.reading.value and s.epoch == known[0].epoch]


LOOKED_AT: tuple[Fact[Any], ...] = (
    VIRT_KIND,
    MACHINE_TYPE,
    GPUS,
    P2P_READ,
    P2P_WRITE,
    CLIQUE_CAPABILITY,
    TOPOLOGY,
    FABRIC,
    NCCL_TRANSPORTS,
    NCCL_ENV,
    COPY,
    ALLREDUCE,
    DELIVERY,
    PROFILE,
    VMS,
    QEMU_COMMANDS,
    HOST_CMDLINE,
)
"""What verdicts and gates rest on, and a change may turn."""


def not_read_since(case: Case) -> Finding | None:
    facts = case.facts
    past = [fact for fact in LOOKED_AT if facts.is_past(fact)]
    if not past:
        return None
    refs = tuple(ref for fact in past for ref in facts.refs(fact)[:1])
    if facts.nothing_since:
        text = "nothing was read since the last change: all of this is what was found before it"
        return Finding("not_read_since", "warning", (measured_claim(text, refs),))
    text = "read before the last change and not since: " + "; ".join(fact.title for fact in past)
    claims = [measured_claim(text, refs)]
    then, now = facts.value(MACHINE_TYPE), facts.value(VM_MACHINE)
    if then and now and then != now and facts.newer(VM_MACHINE, MACHINE_TYPE):
        text = f"the guest’s board was {called(then)} when it was looked at; its VM has {called(now)} since"
        claims.append(measured_claim(text, facts.refs(MACHINE_TYPE, VM_MACHINE)))
    return Finding("not_read_since", "info", tuple(claims))


RULES = (not_read_since, gpus_lost_to_space, status_after, copies_after)
