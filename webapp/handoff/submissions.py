"""Submissions through a link: stored, parsed, and shown to both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, Q, Sum

from agents.facts import ReadingKind, View
from agents.probe import Probe
from agents.probes import handed_for
from webapp.handoff import throttle
from webapp.handoff.models import Answer, Link, Step
from webapp.handoff.scripts import marks_of, ran_of
from webapp.presenting.summaries import reading_words
from webapp.records.intake import Intake, take_uploads
from webapp.records.models import DiagnosisSession, Event, Evidence, StoredReading
from webapp.records.received import Upload

_SAYS_SOMETHING = {ReadingKind.KNOWN, ReadingKind.UNREADABLE}


class RefusedError(Exception):
    """Nothing was taken; the message says why."""


def take(link: Link, uploads: Sequence[Upload], *, phase: str, hide: bool) -> Intake:
    """phase: whose scripts printed it, "" for the collector. Raises RefusedError when the link brought
    too much already."""
    size = sum(len(upload.raw) for upload in uploads)
    if not throttle.may_answer(link.pk):
        raise RefusedError("That was sent very often. Wait ten minutes and send it again.")
    if size + _taken_bytes(link) > throttle.LARGEST_TOTAL_BYTES:
        raise RefusedError("This link has taken all it may; ask for a new one.")
    label = f"{link.person}: {f'output of {phase}' if phase else 'host script'}"
    intake = take_uploads(link.session, uploads, user=None, view=View.HOST, label=label, hide=hide)
    if intake.texts:
        _record_answers(link, intake, phase, hide)
    return intake


def _record_answers(link: Link, intake: Intake, phase: str, hide: bool) -> None:
    cleared = {"accepted_at": None, "accepted_by": None, "declined_at": None, "declined_why": ""}
    Link.objects.filter(pk=link.pk).update(**cleared)
    link.reach(Step.RECEIVED)
    for text in intake.texts:
        Answer.objects.update_or_create(
            link=link,
            evidence=text.evidence,
            defaults={
                "understood": len(text.understood),
                "phase": phase,
                "ran": ran_of(text.evidence, hidden=hide),
                "marks": marks_of(text.evidence, hidden=hide),
                "notes": list(text.notes),
            },
        )
    if intake.understood:
        link.reach(Step.READ)


def _taken_bytes(link: Link) -> int:
    outputs = Evidence.objects.filter(pk__in=link.given.values("evidence"))
    return int(outputs.aggregate(total=Sum("size_bytes"))["total"] or 0)


@dataclass(frozen=True, slots=True)
class Row:
    """One question of the host script, and what this link brought for it.

    state: "read", "nothing" (it looked, and there is nothing of the kind), "refused" (it needs root) or
    "missing". said: the answer that counts, in a few words. outputs: how many answered it.
    """

    probe: Probe
    state: str
    texts: tuple[str, ...] = ()
    outputs: int = 0


def rows_of(link: Link, outputs: Sequence[Evidence]) -> list[Row]:
    """Every question of the host script; outputs: those given by the link. Answers from another source count as
    read, without a text."""
    own: dict[str, list[StoredReading]] = {}
    for reading in StoredReading.objects.filter(evidence__in=_evidence_of(link, outputs)):
        own.setdefault(reading.reader, []).append(reading)
    missing = {probe.id for probe in still_missing(link.session, View.HOST)}
    return [_row(probe, own.get(probe.id, []), missing) for probe in handed_for(View.HOST)]


def _row(probe: Probe, readings: list[StoredReading], missing: set[str]) -> Row:
    counts = _that_counts(readings)
    texts = tuple(dict.fromkeys(text for reading in counts if (text := _reading_text(reading))))
    outputs = len({reading.evidence_id for reading in readings})
    if probe.id in missing:
        return Row(probe, "refused" if readings else "missing", texts, outputs)
    nothing = counts and not any(reading.kind in _SAYS_SOMETHING for reading in counts)
    return Row(probe, "nothing" if nothing else "read", texts, outputs)


def _that_counts(readings: Sequence[StoredReading]) -> list[StoredReading]:
    """The output with the most facts; among equal ones the newest."""
    own: dict[int, list[StoredReading]] = {}
    for reading in readings:
        own.setdefault(reading.evidence_id, []).append(reading)

    def says(evidence: int) -> tuple[int, int, int]:
        known = [r for r in own[evidence] if r.kind == ReadingKind.KNOWN]
        return len(known), -sum(len(r.missing) for r in known), evidence

    return own[max(own, key=says)] if own else []


def is_elsewhere(rows: Sequence[Row]) -> bool:
    """Whether the script ran where there are neither VMs nor GPUs: it was not the host, most likely."""
    return {"host.vms", "host.qemu_running", "host.pcie_links"} <= _without_answer(rows)


def is_asleep(rows: Sequence[Row]) -> bool:
    """Whether there are VMs and none of them ran: how QEMU was started is seen only while it runs."""
    vms = any(row.probe.id == "host.vms" and row.state == "read" for row in rows)
    return vms and "host.qemu_running" in _without_answer(rows)


def _without_answer(rows: Sequence[Row]) -> set[str]:
    return {row.probe.id for row in rows if row.state == "nothing"}


def _reading_text(reading: StoredReading) -> str:
    if reading.kind != ReadingKind.KNOWN:
        return reading.detail[:140]
    return reading_words(reading)


def _evidence_of(link: Link, outputs: Sequence[Evidence]) -> Any:
    """The texts, and the frames of the collectors' answers among them."""
    return Evidence.objects.filter(
        Q(pk__in=[e.pk for e in outputs]) | Q(meta__bundle__in=[e.sha256 for e in outputs]),
        session=link.session_id,
        set_aside_at=None,
    )


def still_missing(session: DiagnosisSession, role: View) -> tuple[Probe, ...]:
    """The probes that would still tell something: never answered, or refused for lack of rights."""
    answered = set(
        StoredReading.objects.of_the_case()
        .filter(evidence__session=session)
        .exclude(kind=ReadingKind.NOT_RUN)
        .values_list("reader", flat=True)
    )
    return tuple(probe for probe in handed_for(role) if probe.id not in answered)


def say_of_host(link: Link, answers: Mapping[str, Any]) -> None:
    """Stores the person's answers about the host in the workload, as the operator's own answers. The VM they name
    ("vm") is only shown to the operator, who chooses it."""
    with transaction.atomic():
        session = DiagnosisSession.objects.select_for_update().get(pk=link.session_id)
        facts = {name: value for name, value in answers.items() if name != "vm"}
        host = {**session.workload.get("host", {}), **facts}
        if root := answers.get("host_root"):
            host["host_root"] = _root_access(session, root)
        session.workload = {**session.workload, "host": host}
        session.version = F("version") + 1
        session.save(update_fields=["workload", "version", "updated_at"])
        link.answers = {**link.answers, **answers}
        link.save(update_fields=["answers"])
        Event.record(session, "link_answered", None, person=link.person)


def _root_access(session: DiagnosisSession, statement: str) -> str:
    """The operator's view of the admin's root access: someone who can be asked. The operator's own root access
    stays."""
    own = session.workload.get("host", {}).get("host_root")
    return "yes" if own == "yes" else "no" if statement == "no" else "ask admin"
