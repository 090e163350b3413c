"""The records of a guided diagnosis."""

from webapp.triage.models.assignment import Assignment
from webapp.triage.models.digest import Digest, Entry
from webapp.triage.models.event import Event, News
from webapp.triage.models.evidence import Evidence, EvidenceBlock
from webapp.triage.models.pseudonym import Pseudonym
from webapp.triage.models.reading import StoredReading
from webapp.triage.models.run import OutputChunk, Run, RunState
from webapp.triage.models.session import DiagnosisSession, SessionMember, seen_by
from webapp.triage.models.stored_key import StoredKey
from webapp.triage.models.target import PinnedHostKey, Target
from webapp.triage.models.visit import Visit

__all__ = [
    "Assignment",
    "DiagnosisSession",
    "Digest",
    "Entry",
    "Event",
    "Evidence",
    "EvidenceBlock",
    "News",
    "OutputChunk",
    "PinnedHostKey",
    "Pseudonym",
    "Run",
    "RunState",
    "SessionMember",
    "StoredKey",
    "StoredReading",
    "Target",
    "Visit",
    "seen_by",
]
