"""`reread [--session ID]`: applies today's parsers to stored evidence."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.records.models import DiagnosisSession
from webapp.records.reread import SessionReread, reread


class Command(BaseCommand):
    help = (
        "Reads stored evidence again with today's parsers and says which facts and verdicts changed. "
        "Raw evidence is never changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--session", metavar="ID", help="only this session's evidence")
        parser.add_argument("--json", action="store_true", help="print peerpath.reread/1")

    def handle(self, *, session: str | None, **options: Any) -> None:
        done = reread(_find(session) if session else None)
        if options["json"]:
            self.stdout.write(_as_json(done))
            return
        for one in done:
            for line in _as_text(one):
                self.stdout.write(line)
        read, changed = sum(one.read for one in done), sum(len(one.changed) for one in done)
        self.stdout.write(f"{read} pieces of evidence read, {changed} now read differently")


def _as_text(done: SessionReread) -> Iterator[str]:
    if not done.changed:
        return
    yield f"{done.session.pk} {done.session.title}"
    for fact in done.facts:
        words = "the value changed" if fact.value_changed else f"{fact.before} → {fact.after}"
        yield f"  {fact.fact_id}: {words}"
    for verdict in done.verdicts:
        yield f"  hypothesis {verdict.hypothesis}: {verdict.before} → {verdict.after}"
    if not (done.facts or done.verdicts):
        yield "  neither what counts for a fact nor a verdict changed"


def _as_json(done: tuple[SessionReread, ...]) -> str:
    sessions = [
        {
            "session": str(one.session.pk),
            "read": one.read,
            "changed": list(one.changed),
            "facts": [
                {"id": f.fact_id, "before": f.before, "after": f.after, "value_changed": f.value_changed}
                for f in one.facts
            ],
            "verdicts": [{"id": v.hypothesis, "before": v.before, "after": v.after} for v in one.verdicts],
        }
        for one in done
    ]
    document = {"schema": "peerpath.reread/1", "sessions": sessions}
    return json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1)


def _find(session: str) -> DiagnosisSession:
    try:
        return DiagnosisSession.objects.get(pk=session)
    except (DiagnosisSession.DoesNotExist, ValidationError):
        raise CommandError(f"there is no session {session}") from None
