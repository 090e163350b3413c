"""The text of a notice: who did what where, without the content of outputs and comments."""

import json
from dataclasses import dataclass
from datetime import UTC

from django.conf import settings

from webapp.notices.kinds import OF_EVENTS
from webapp.records.models import DiagnosisSession, Event

SCHEMA = "peerpath.notice/1"


@dataclass(frozen=True, slots=True)
class Notice:
    """text: one sentence. path: where it can be read."""

    event: Event
    kind: str
    text: str
    path: str

    @property
    def address(self) -> str:
        return f"{settings.PUBLIC_URL}{self.path}"

    def as_json(self) -> str:
        session = self.event.session
        body = {
            "schema": SCHEMA,
            "kind": self.kind,
            "at": self.event.at.astimezone(UTC).isoformat(),
            "by": self.event.who,
            "text": self.text,
            "url": self.address,
            "session": {"id": str(session.pk), "title": session.title},
            "event": self.event.number,
        }
        return json.dumps(body, sort_keys=True, ensure_ascii=False)


def notice_of(event: Event) -> Notice:
    """The notice of an event of one of the kinds."""
    kind, session = OF_EVENTS[event.kind], event.session
    return Notice(event, kind, _text(event, session), event.get_absolute_url())


def _text(event: Event, session: DiagnosisSession) -> str:
    who, where = event.who, f"in “{session.title}”"
    record = f"decision {event.data.get('number', '')}"
    match event.kind:
        case "commented":
            return f"{who} names you {where}."
        case "decision_proposed":
            return f"{who} proposes {record} {where}."
        case "decision_approved":
            return f"{who} approves {record} {where}."
        case "decision_rejected":
            return f"{who} rejects {record} {where}."
        case "decision_changes_wanted":
            return f"{who} wants changes in {record} {where}."
        case "link_made":
            return f"{who} asks {event.data.get('person', 'the host’s admin')} for the host’s half {where}."
        case "link_received":
            return f"{who} sent the host’s evidence {where}."
        case "link_declined":
            return f"{who} says that what was asked of the host {where} cannot be done."
    return f"Run {event.data.get('number', '')} {where} ended: {event.data.get('state', '')}."
