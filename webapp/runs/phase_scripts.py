"""A phase script for what a command was given: sources, or a session that is stored here."""

from collections.abc import Sequence

from django.core.exceptions import ValidationError

from agents.facts import View
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import PhaseScript, ScriptError, phase_script
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.runs.outputs import facts_from, read_sources
from webapp.runs.sources import Access, gather


def script_from_sources(sources: Sequence[str], *, role: View, phase: str, do: str, vmid: int | None) -> PhaseScript:
    """Raises SourceError, an agents.agent error, or ScriptError."""
    facts: Facts = facts_from(read_sources(gather(sources, Access(role)), None))
    return phase_script(facts, phase, do, vmid, role=role)


def script_of_session(session_id: str, *, role: View, phase: str, do: str, vmid: int | None) -> PhaseScript:
    """Raises ScriptError, also where there is no such session."""
    try:
        session = DiagnosisSession.objects.get(pk=session_id)
    except (DiagnosisSession.DoesNotExist, ValidationError, ValueError):
        raise ScriptError(f"There is no session {session_id}.") from None
    return phase_script(session_diagnosis(session), phase, do, vmid or session.vmid, role=role)
