"""Makes the digest of a session: what of it can be searched and compared with others."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import Max

from agents.facts.gpu import GPUS
from agents.facts.host import PLATFORM
from agents.facts.platform import DRIVER_VERSION, MACHINE_TYPE, VIRT_KIND
from agents.facts.workload import MODEL
from agents.raw_reading import title_of
from webapp.diagnosis.case import GateState, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Digest, Entry, Run
from webapp.records.models.run import BENCHMARK, ENDED
from webapp.records.search import plain

LONGEST_TITLE = 400
MOST_NAMES = 4  # of a run's probes; of more nobody thinks by name


def digest_refresh(session: DiagnosisSession) -> None:
    """Brings it up to the session's last event. Of two at once, the one that knew more stays."""
    upto = session.events.aggregate(last=Max("number"))["last"] or 0
    result = session_diagnosis(session)
    columns = columns_of(result)
    entries = list(_entries(session, result, columns))
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        Digest.objects.get_or_create(session=session)
        if Digest.objects.filter(pk=session.pk, upto__lte=upto).update(upto=upto, **columns):
            Entry.objects.filter(session=session).delete()
            Entry.objects.bulk_create(entries)


def columns_of(result: Diagnosis) -> dict[str, Any]:
    """What a digest has in columns, from a diagnosis."""
    facts = result.facts
    names = [gpu.name or "" for gpu in facts.value(GPUS) or ()]
    driver = facts.value(DRIVER_VERSION) or ""
    platform = facts.value(PLATFORM)
    verdicts = supported(result)
    return {
        "gpu": _most_frequent(names)[:100],
        "gpu_count": len(names) or None,
        "board": ((platform.board if platform else "") or "")[:100],
        "driver": driver[:40],
        "driver_major": driver.partition(".")[0][:10],
        "machine_type": str(facts.value(MACHINE_TYPE) or "")[:20],
        "virt": (facts.value(VIRT_KIND) or "")[:20],
        "verdicts": verdicts,
        "verdict": verdicts[0] if verdicts else "",
        "gate": next((g.gate for g in result.ladder if g.state is GateState.FAIL), ""),
        "headline": result.headline[:LONGEST_TITLE],
    }


def supported(result: Diagnosis) -> list[str]:
    """Ids of the supported hypotheses, the largest share of a step first."""
    shares = [(n, v) for n, v in result.verdicts.items() if v.kind is VerdictKind.SUPPORTED]
    return [name for name, _ in sorted(shares, key=lambda item: -_share(item[1]))]


def _share(verdict: Verdict) -> float:
    return verdict.share_ms[1] if verdict.share_ms else 0.0


def _most_frequent(names: list[str]) -> str:
    return Counter(names).most_common(1)[0][0] if names else ""


def _entries(session: DiagnosisSession, result: Diagnosis, columns: dict[str, Any]) -> Iterator[Entry]:
    yield _entry(session, "session", "", session.title, *_session_texts(session, result, columns))
    for finding in result.findings:
        texts = [claim.text for claim in finding.claims]
        yield _entry(session, "finding", finding.id, texts[0], finding.id, *texts)
    for run in session.runs.filter(state__in=ENDED).select_related("target").order_by("number"):
        yield _entry(session, "run", str(run.number), *run_texts(run))
    for evidence in session.evidence.defer("body", "stderr"):
        title = title_of(evidence.reader) if evidence.reader else ""
        heading = evidence.label or title or evidence.reader
        yield _entry(session, "evidence", evidence.name, heading, evidence.reader, title)
    for decision in session.decisions.defer("pins").prefetch_related("approvals"):
        names = [o["title"] for o in decision.options if o["id"] in decision.chosen]
        texts = [*decision.texts, decision.outcome, decision.ended, *names, decision.context]
        texts += [approval.reason for approval in decision.approvals.all()]
        yield _entry(session, "decision", str(decision.number), decision.title, *texts)
    for comment in session.comments.select_related("author"):
        who = comment.author.username
        yield _entry(session, "comment", str(comment.pk), comment.text, who, comment.stance)


def run_texts(run: Run) -> Iterator[str]:
    """What ran and where, how it ended, and the sentence that says why; of many probes no names."""
    benchmark = run.kind == BENCHMARK
    what = title_of(run.names[0]) if benchmark else f"{len(run.names)} {run.target.role} probes"
    yield f"Run {run.number}: {what} on {run.target}"
    yield from (run.get_state_display(), run.kind, run.problem)
    yield from run.names if len(run.names) <= MOST_NAMES else ()


def _session_texts(session: DiagnosisSession, result: Diagnosis, columns: dict[str, Any]) -> Iterator[str]:
    yield from (session.symptom, session.own_words, session.owner.username)
    yield from (value for value in columns.values() if isinstance(value, str))
    yield from (h.claim for h in all_hypotheses() if h.id in columns["verdicts"])
    yield from (str(target) for target in session.targets.all())
    yield _model(result.facts)


def _model(facts: Facts) -> str:
    model = facts.value(MODEL)
    return (model.name or "") if model else ""


def _entry(session: DiagnosisSession, kind: str, ref: str, title: str, *texts: str) -> Entry:
    return Entry(session=session, kind=kind, ref=ref[:120], title=title[:LONGEST_TITLE], words=plain(title, *texts))
