"""The records of a guided diagnosis."""

from webapp.records.models.assignment import Assignment
from webapp.records.models.digest import Digest, Entry
from webapp.records.models.event import Event, News
from webapp.records.models.evidence import Evidence, EvidenceBlock
from webapp.records.models.pseudonym import Pseudonym
from webapp.records.models.reading import StoredReading
from webapp.records.models.run import OutputChunk, Run, RunState
from webapp.records.models.session import DiagnosisSession, SessionMember, seen_by
from webapp.records.models.stored_key import StoredKey
from webapp.records.models.target import PinnedHostKey, Target
from webapp.records.models.visit import Visit

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
