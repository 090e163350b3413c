"""A decision record: its page, its steps from proposal to outcome, its export, and the list of all records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.models import Role
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.compare.predictions import Score
from webapp.handoff.models import Link
from webapp.pages.decision.verify import Refused, verify_page
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session, on_session_for
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, seen_by
from webapp.records.models.session import stands
from webapp.records.redaction import RedactionError, hiding
from webapp.review import workflow
from webapp.review.before_after import before_after
from webapp.review.calibration import scores_of
from webapp.review.closing_evidence import proof_of
from webapp.review.decisions import DecisionError, as_it_was, decisions_matching, superseded_pins
from webapp.review.disputes import bearing_on
from webapp.review.inbox import seen_by_proposer
from webapp.review.madr import as_markdown
from webapp.review.models import Approval, Decision, DecisionState, RecordVersion, Word
from webapp.review.review_context import Known, Said, known_before, my_word, pins_cited, said_on
from webapp.review.scoring import as_data
from webapp.review.threads import Thread, threads_read
from webapp.review.versions import Difference, Judged, differences, versions_of

PER_PAGE = 50


SAID = {"yes": Word.APPROVED, "changes": Word.CHANGES_WANTED, "back": Word.WITHDRAWN}


@require_safe
@on_session
def decision(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    """?format=md exports it."""
    if request.GET.get("format") == "md":
        record = get_object_or_404(session.decisions, number=number)
        return _markdown_file(record, raw=bool(request.GET.get("raw")))
    return _page(request, session, number)


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """typed: a refused word. known: today's findings against haste. disputes: open ones on the record;
    other_disputes: the session's other open ones. conversation: words and threads, oldest first. recommended:
    recommended options that the record leaves out. pins: each with its cited lines; stale: names of pins with a
    newer output. counting: the approvals of the record's present content, approving: the number of yes among them.
    mine: whether the reader proposed it."""

    typed: str
    known: list[Known]
    disputes: list[Thread]
    other_disputes: list[Thread]
    conversation: list[Said]
    versions: list[Judged]
    my_word: Approval | None
    decision: Decision
    chosen: list[dict[str, Any]]
    recommended: list[dict[str, Any]]
    not_chosen: list[dict[str, Any]]
    pins: list[tuple[dict[str, Any], tuple[EvidenceRef, ...]]]
    stale: list[str]
    approvals: list[Approval]
    approving_links: list[Link]
    counting: list[Approval]
    needed: int
    approving: int
    scores: list[Score]
    mine: bool


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """judged: all versions, each with its words. was: the record's state in `after`."""

    decision: Decision
    judged: list[Judged]
    before: RecordVersion
    after: RecordVersion
    differences: list[Difference]
    was: Decision


def _page(
    request: HttpRequest, session: DiagnosisSession, number: int, typed: str = "", status: int = 200
) -> HttpResponse:
    later = Decision.objects.filter(supersedes=OuterRef("pk")).order_by("number")
    rows = session.decisions.select_related("proposed_by", "supersedes").annotate(
        replaced_by=Subquery(later.values("number")[:1]),
        changed=Exists(RecordVersion.objects.filter(decision=OuterRef("pk"), number=2)),
    )
    record = get_object_or_404(rows, number=number)
    approvals = workflow.approvals_of(record)
    counting = workflow.counting(record, approvals)
    facts = facts_of(session)
    proposed = record.state == DecisionState.PROPOSED
    result = session_diagnosis(session, facts) if proposed else None
    threads = threads_read(session)
    others = [o for o in record.options if o["id"] not in record.chosen]
    judged = versions_of(record, approvals) if vars(record)["changed"] else []
    mine = record.proposed_by_id == acting(request).pk
    own = DecisionPage(
        typed=typed,
        known=known_before(result, reverse("session:diagnosis", args=[session.pk])) if result else [],
        disputes=bearing_on(record, threads),
        other_disputes=[t for t in threads if t.disputes and t not in bearing_on(record, threads)],
        conversation=said_on(record, judged, approvals, threads),
        versions=judged,
        my_word=my_word(record, approvals, acting(request)),
        decision=record,
        chosen=[o for o in record.options if o["id"] in record.chosen],
        recommended=[o for o in others if o["status"] == OptionStatus.RECOMMENDED],
        not_chosen=[o for o in others if o["status"] != OptionStatus.RECOMMENDED],
        pins=pins_cited(record, facts),
        stale=superseded_pins(record, facts),
        approvals=approvals,
        approving_links=_approving_links(session) if proposed else [],
        counting=counting,
        needed=workflow.needed(record),
        approving=sum(approval.approves for approval in counting),
        scores=scores_of(session, number) if record.state in workflow.CLOSED else [],
        mine=mine,
    )
    unseen = any(word.seen_at is None for word in approvals)
    if request.method == "GET" and mine and unseen:
        seen_by_proposer(Approval.objects.filter(decision=record))
    page = session_page(session, facts=facts, result=result, with_answer=True)
    return render_page(request, "decision/decision.html", page, own, status=status)


@require_safe
@on_session
def versions(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    """?from= and ?to= name versions by number; without them, the version you judged and the newest. A record without
    a proposal has no version, and the page shows the record itself."""
    record = get_object_or_404(session.decisions.select_related("proposed_by"), number=number)
    judged = versions_of(record, workflow.approvals_of(record), whole=True)
    numbered = [one.version for one in judged]
    if not numbered:
        return redirect("decision:decision", session.pk, number)
    mine = [one for one in judged if any(w.by_id == acting(request).pk for w in one.words)]
    usual = mine[-1].version if mine else numbered[max(0, len(numbered) - 2)]
    before = _version_of(numbered, request.GET.get("from", ""), usual)
    after = _version_of(numbered, request.GET.get("to", ""), numbered[-1])
    own = VersionsPage(
        decision=record,
        judged=judged,
        before=before,
        after=after,
        differences=differences(before, after),
        was=as_it_was(after),
    )
    return render_page(request, "decision/versions.html", session_page(session), own)


def _version_of(numbered: Sequence[RecordVersion], number: str, usual: RecordVersion) -> RecordVersion:
    return next((version for version in numbered if str(version.number) == number), usual)


def _approving_links(session: DiagnosisSession) -> list[Link]:
    """Links by which a person without an account may still judge the proposals."""
    may = session.links.filter(may_approve=True).annotate(standing=stands())
    may = may.prefetch_related("opened_by")
    return [link for link in may if link.is_open]


def _markdown_file(decision: Decision, *, raw: bool) -> HttpResponse:
    try:
        text = as_markdown(decision, None if raw else hiding(decision.session))
    except RedactionError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="decision-{decision.number}.md"'
    return response


def _act_succeeded(request: HttpRequest, act: Callable[[], None]) -> bool:
    """False after a refusal; a message gives the reason."""
    try:
        act()
    except DecisionError as error:
        messages.error(request, str(error))
        return False
    return True


@require_POST
@on_session
def move(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    """An operator's acts on a record: propose, withdraw, renew, and mark as carried out."""
    record, user = get_object_or_404(session.decisions, number=number), acting(request)
    acts: dict[str, Callable[[], None]] = {
        "propose": lambda: workflow.decision_propose(record, user=user),
        "withdraw": lambda: workflow.decision_withdraw(record, user=user),
        "renew": lambda: workflow.decision_renew(record, user=user, result=session_diagnosis(session)),
        "apply": lambda: workflow.decision_apply(record, user=user, facts=facts_of(session)),
    }
    step = request.POST.get("do", "")
    if step not in acts:
        messages.error(request, "There is no such step; reload the page.")
    elif _act_succeeded(request, acts[step]):
        if step == "apply":
            return redirect("decision:verify", session.pk)
        if step == "withdraw":
            editor = reverse("decision:decide", args=[session.pk])
            return redirect(f"{editor}?draft={number}#reason")
    return redirect("decision:decision", session.pk, number)


@require_POST
@on_session_for(Role.REVIEWER)
def judge(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    """Takes a second person's word. The page keeps the typed text after a refusal."""
    record = get_object_or_404(session.decisions, number=number)
    reason = request.POST.get("reason", "").strip()
    try:
        workflow.decision_judge(
            record,
            word=SAID.get(request.POST.get("approves", ""), Word.REJECTED),
            despite="despite" in request.POST,
            reason=reason,
            facts=facts_of(session),
            by=acting(request),
            seen=request.POST.get("seen", ""),
        )
    except DecisionError as error:
        messages.error(request, str(error))
        return _page(request, session, number, typed=reason, status=422)
    return redirect("decision:decision", session.pk, number)


@require_POST
@on_session
def close(request: HttpRequest, session: DiagnosisSession, number: int) -> HttpResponse:
    """Closes by the two states that the page compared. The page keeps the typed text after a refusal."""
    record = get_object_or_404(session.decisions, number=number)
    states = (request.POST.get("before", ""), request.POST.get("after", ""))
    result, outcome = before_after(session, states, record), request.POST.get("outcome", "")
    try:
        workflow.decision_close(
            record,
            user=acting(request),
            state=request.POST.get("state", ""),
            outcome=outcome,
            proof=proof_of(result, record),
            scores=as_data(result.scores),
        )
    except DecisionError as error:
        messages.error(request, str(error))
        return verify_page(request, session, result, Refused(number, outcome))
    return redirect("decision:decision", session.pk, number)


@require_safe
def decisions(request: HttpRequest) -> HttpResponse:
    """Every decision of the sessions this person may see, newest first; ?q= searches, ?state= narrows, ?before=
    names the last row of the page before."""
    records = (
        Decision.objects.filter(seen_by(acting(request)))
        .select_related("session", "proposed_by")
        .defer("options", "pins", "context")
        .order_by("-created_at", "-pk")
    )
    q, state = request.GET.get("q", "").strip()[:100], request.GET.get("state", "")
    records = decisions_matching(records, q=q, state=state)
    rows = list(_older_records(records, request.GET.get("before", ""))[: PER_PAGE + 1])
    last = rows[PER_PAGE - 1] if len(rows) > PER_PAGE else None
    before = f"{last.created_at.isoformat()}_{last.pk}" if last else ""
    context = {"nav": "decisions", "decisions": rows[:PER_PAGE], "q": q, "state": state}
    context["after"] = before and urlencode({"q": q, "state": state, "before": before})
    return TemplateResponse(request, "decision/decisions.html", {**context, "states": DecisionState.choices})


def _older_records(records: QuerySet[Decision], before: str) -> QuerySet[Decision]:
    """Records before the mark; all of them if the mark is not valid."""
    at, _, key = before.partition("_")
    try:
        moment, last = datetime.fromisoformat(at).astimezone(UTC), int(key[:18])
    except (ValueError, OverflowError):
        return records
    return records.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=last))
