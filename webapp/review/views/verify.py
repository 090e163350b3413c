"""Step 8: the same measurements before and after a change, with “cannot tell” as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET

from agents.facts import Fact, ReadingKind
from agents.facts.bench import COPY, CopyResult
from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI
from agents.facts.host import HOST_CMDLINE
from agents.facts.p2p import P2P_READ, P2P_WRITE, WORST_LINK
from agents.facts.platform import DRIVER_VERSION, KERNEL_CMDLINE, MACHINE_TYPE
from agents.facts.vm import VM_ARGS, VM_CPU, VM_MACHINE
from webapp.diagnosis.compare.copies import Comparison, compare_copies
from webapp.diagnosis.compare.p2p_status import p2p_status
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.matching import with_vm
from webapp.review.models import DecisionState
from webapp.triage.case_facts import facts_of
from webapp.triage.models import DiagnosisSession
from webapp.triage.views.shell import on_session, shell

# What a person wants to see beside the copies: did the change arrive, and did anything else move?
WATCHED: tuple[Fact[Any], ...] = (
    P2P_READ, P2P_WRITE, GPU_COUNT_SMI, GPU_COUNT_PCI, WORST_LINK, MACHINE_TYPE, VM_MACHINE, VM_ARGS,
    VM_CPU, KERNEL_CMDLINE, HOST_CMDLINE, DRIVER_VERSION,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beside:
    """One fact before and after. after None: not read since the change."""

    title: str
    before: Sourced
    after: Sourced | None

    @property
    def same(self) -> bool:
        return self.after is not None and self.before.reading.value == self.after.reading.value


@require_GET
@on_session
def verify(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    facts = with_vm(facts_of(session), session.vmid)
    runs = _copies_by_epoch(facts, session.epoch)
    comparison: Comparison | None = None
    if runs[0] and runs[1]:
        comparison = compare_copies(
            runs[0][0], runs[1][0], more_before=runs[0][1:], more_after=runs[1][1:]
        )
    applied = session.decisions.filter(state=DecisionState.APPLIED).last()
    context = shell(
        session,
        "verify",
        comparison=comparison,
        before=runs[0][0] if runs[0] else None,
        after=runs[1][0] if runs[1] else None,
        status=p2p_status(facts),
        beside=_beside(facts, session.epoch),
        decision=applied,
        waiting=session.decisions.filter(state=DecisionState.APPROVED),
        typed=request.GET.get("outcome", ""),
    )
    return TemplateResponse(request, "review/verify.html", context)


def _copies_by_epoch(facts: Facts, epoch: int) -> tuple[list[CopyResult], list[CopyResult]]:
    """The runs of the newest state, and those of the state before it; newest first."""
    known = [item for item in facts.all(COPY) if item.reading.kind is ReadingKind.KNOWN]
    older = [item.epoch for item in known if item.epoch < epoch]
    last = max(older, default=-1)
    before: list[CopyResult] = [
        i.reading.value for i in known if i.epoch == last and i.reading.value
    ]
    after: list[CopyResult] = [
        i.reading.value for i in known if i.epoch == epoch and i.reading.value
    ]
    return (before, after) if epoch else ([], [])


def _beside(facts: Facts, epoch: int) -> list[Beside]:
    found = []
    for fact in WATCHED:
        known = [s for s in facts.all(fact) if s.reading.kind is ReadingKind.KNOWN]
        before = next((s for s in known if s.epoch < epoch), None)
        after = next((s for s in known if s.epoch == epoch), None)
        if before is not None:
            found.append(Beside(fact.title, before, after))
    return found
