"""A database of so many sessions and readings as bench/scale.py measures."""

from __future__ import annotations

import random
from itertools import cycle
from typing import Any

GPUS = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA L40S", "NVIDIA RTX PRO 6000", "NVIDIA B200")
BOARDS = ("ESC8000A-E13", "H13SSW", "S8056GM", "X14DBG", "G493-ZB3", "WRX90E")
EVIDENCE_EACH = 2
PEOPLE, RICH = ("admin", "few", "many"), "With a long log"


def fill(sessions: int, readings: int) -> None:
    from django.utils import timezone

    from webapp.accounts.models import User
    from webapp.records.models import Event
    from webapp.review.digests import digest_refresh
    from webapp.runs.samples import open_sample

    people = {name: User.objects.create(username=name, is_staff=name == "admin") for name in PEOPLE}
    rich = open_sample("kpro6@host", owner=people["admin"])
    rich.title = RICH
    rich.save()
    last = rich.events.count()
    _bulk(
        [
            Event(
                session=rich, number=last + n, kind="step_saved", actor=people["admin"],
                at=timezone.now(), data={"step": "symptom"}, hash="0" * 64,
            )
            for n in range(1, 10_001)
        ]
    )  # fmt: skip
    digest_refresh(rich)
    template = open_sample("kpro6@guest", owner=people["admin"])
    digest_refresh(template)
    made = _sessions(sessions, people)
    _texts(made, people, template)
    _runs(made, people["many"])
    _readings(made, template, readings // sessions // EVIDENCE_EACH)
    _analyze()


def _sessions(count: int, people: dict[str, Any]) -> list[Any]:
    from webapp.records.models import DiagnosisSession, SessionMember

    made = [
        DiagnosisSession(owner=people["many"], title=f"Case {number} on rack {number % 977}") for number in range(count)
    ]
    members = [SessionMember(session=s, user=people["many"]) for s in made]
    members += [SessionMember(session=s, user=people["few"]) for s in made[:: max(1, count // 1000)]]
    _bulk(made)
    _bulk(members)
    return made


VERDICTS = ("no_clique", "staged_through_host", "kvm_hidden", "launch_bound", "memory_bound")


def _digest(session: Any, chance: random.Random, model: Any, gpu: str, board: str, driver: str) -> Any:
    from webapp.records.models import Digest

    verdicts = chance.sample(VERDICTS, 2)
    return Digest(
        session=session, upto=3, gpu=gpu, gpu_count=8, board=board, driver=driver,
        driver_major=driver[:3], machine_type=chance.choice(("q35", "i440fx")), virt="kvm",
        verdicts=verdicts, verdict=verdicts[0], gate="granted", headline=model.headline,
    )  # fmt: skip


def _runs(made: list[Any], user: Any) -> None:
    """One that ended in each session, and found like the rest."""
    from django.utils import timezone

    from webapp.records.models import Entry, Run, Target
    from webapp.records.search import plain
    from webapp.review.digests import run_texts

    about = {"role": "guest", "agent": "ssh", "user": "op", "created_by": user}
    targets = [Target(session=s, host=f"gpu-{n % 977}", **about) for n, s in enumerate(made)]
    _bulk(targets)
    runs = [
        Run(
            session=target.session, target=target, number=1, kind="benchmark", names=["bench.copy"],
            state="succeeded", ended_at=timezone.now(), created_by=user,
        )
        for target in targets
    ]  # fmt: skip
    _bulk(runs)
    texts_by_session = [(run.session, list(run_texts(run))) for run in runs]
    _bulk([Entry(session=s, kind="run", ref="1", title=texts[0], words=plain(*texts)) for s, texts in texts_by_session])


def _texts(made: list[Any], people: dict[str, Any], template: Any) -> None:
    """Digests, entries, three events a session; a decision of every fifth, a comment of every tenth."""
    from django.utils import timezone

    from webapp.records.models import Entry, Event
    from webapp.records.search import plain
    from webapp.review.models import Comment, Decision, Mention

    chance, model = random.Random(1), template.digest
    digests: list[Any] = []
    entries: list[Any] = []
    events: list[Any] = []
    decisions: list[Any] = []
    comments: list[Any] = []
    findings = [(e.ref, e.title, e.words) for e in template.entries.filter(kind="finding")]
    for number, session in enumerate(made):
        gpu, board = chance.choice(GPUS), chance.choice(BOARDS)
        driver = f"{chance.choice((550, 570, 580, 590))}.{chance.randrange(200)}.{number % 17:02}"
        digests.append(_digest(session, chance, model, gpu, board, driver))
        words = plain(session.title, gpu, board, driver, model.headline, "kvm")
        entries.append(Entry(session=session, kind="session", title=session.title, words=words))
        for ref, title, text in findings[:3]:
            entries.append(Entry(session=session, kind="finding", ref=ref, title=title, words=text))
        for kind in ("session_opened", "evidence_taken", "run_finished"):
            events.append(
                Event(
                    session=session, number=1 + len(events) % 3, kind=kind, actor=people["many"],
                    at=timezone.now(), hash="0" * 64, data={"number": 1, "state": "succeeded"},
                )
            )  # fmt: skip
        if number % 5 == 0:
            state = ("proposed", "approved", "verified", "no_effect", "draft")[number // 5 % 5]
            decisions.append(
                Decision(
                    session=session, number=1, title=f"Grant the clique {number}", reason="why",
                    state=state, proposed_by=people["many"],
                )
            )  # fmt: skip
            title = decisions[-1].title
            text = plain(title, "why", state)
            entries.append(Entry(session=session, kind="decision", ref="1", title=title, words=text))
        if number % 10 == 0:
            comments.append(Comment(session=session, text="look here @few", author=people["many"]))
    for rows in (digests, entries, events, decisions, comments):
        _bulk(rows)
    _bulk([Mention(comment=c, user=people["few"]) for c in comments[:5000]])


def _readings(made: list[Any], template: Any, each: int) -> None:
    """each: readings of one evidence, copied inside the database from the template's."""
    from django.db import connection

    from webapp.records.models import Evidence, StoredReading

    rows = cycle(template.evidence.exclude(readings=None)[:EVIDENCE_EACH])
    evidence = [
        Evidence(
            session=session, reader=row.reader, view=row.view, origin="paste", label=f"{n}.txt",
            sha256=row.sha256, size_bytes=row.size_bytes, created_by=session.owner,
        )
        for session in made
        for n, row in zip(range(EVIDENCE_EACH), rows, strict=False)
    ]  # fmt: skip
    _bulk(evidence)
    readings = StoredReading.objects.filter(evidence__session=template).values_list("pk", flat=True)
    chosen = ",".join(str(pk) for pk in readings[:each])
    columns = "fact_id, kind, value, detail, lines, missing, reader, parsed_by"
    copied = ", ".join(f"r.{name}" for name in columns.split(", "))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO records_storedreading (evidence_id, {columns})"
            f" SELECT e.id, {copied} FROM records_evidence e CROSS JOIN records_storedreading r"
            f" WHERE r.id IN ({chosen}) AND e.id >= {evidence[0].pk}"
        )


def _bulk(rows: list[Any]) -> None:
    from django.db import transaction

    with transaction.atomic():
        for start in range(0, len(rows), 5000):
            type(rows[0])._default_manager.bulk_create(rows[start : start + 5000])


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
