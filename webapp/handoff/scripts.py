"""Makes the scripts that are handed out, keeps them, and knows again what they print."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from agents.collector import build_script, script_sha256
from agents.facts import View
from agents.framing import Bundle, Header, read_bundles
from agents.probe import Probe
from agents.probes import all_probes, handed_for
from webapp.accounts.models import User
from webapp.diagnosis.scripts import PhaseScript
from webapp.handoff.models import Download, HandedScript, Link, Step
from webapp.records.models import DiagnosisSession, Event, Evidence
from webapp.records.received import BUNDLE

# An older answer is marked: the machine may have changed since.
OLD = timedelta(hours=24)


def collector_for(
    session: DiagnosisSession,
    role: View,
    probes: Sequence[Probe],
    link: Link | None = None,
    stored: Iterable[HandedScript] | None = None,
) -> HandedScript:
    """The collector of these probes; one made before, when today's would be the same. stored: the link's
    scripts, the newest first, where they were read already."""
    names = [probe.id for probe in probes]
    if stored is None:
        stored = HandedScript.objects.filter(session=session, link=link, names=names, phase="")
    same = (s for s in stored if (s.role, s.names, s.phase) == (role.value, names, ""))
    before = next(same, None)
    if before and _built_again(before, probes) == before.text:
        return before
    nonce = secrets.token_hex(16)
    text = build_script(probes, role=role, nonce=nonce)
    short = "" if len(names) > 1 and len(names) == len(handed_for(role)) else "-rest"
    return _store_script(session, link, f"peerpath-{role.value}{short}.sh", role, text, names=names, nonce=nonce)


def handed(session: DiagnosisSession, link: Link | None, made: PhaseScript) -> HandedScript:
    """A phase's script as it is shown and downloaded; kept once for the same text."""
    about = {"phase": made.phase, "act": made.do.value, "vmid": made.vmid}
    return _store_script(session, link, made.file_name, made.role, made.text, **about)


def _store_script(
    session: DiagnosisSession, link: Link | None, name: str, role: View, text: str, **more: object
) -> HandedScript:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    known = HandedScript.objects.filter(session=session, link=link, name=name, sha256=sha256)
    return known.first() or HandedScript.objects.create(
        session=session, link=link, name=name, role=role.value, text=text, sha256=sha256, **more
    )


def _built_again(script: HandedScript, probes: Sequence[Probe]) -> str:
    return build_script(probes, role=View(script.role), nonce=script.nonce)


def download_record(script: HandedScript, *, by: User | None) -> None:
    """by: None for the person of the script's link."""
    Download.objects.create(script=script, by=by)
    if script.link and by is None:
        script.link.reach(Step.DOWNLOADED)
    else:
        Event.record(script.session, "script_downloaded", by, role=script.role, name=script.name)


def marks_of(evidence: Evidence, *, hidden: bool = False) -> list[str]:
    """Sentences on what is odd about the origin of a collector's answer, which is parsed all the same.

    hidden: names were replaced before it was stored, so that it differs from the printed text.
    """
    if evidence.reader != BUNDLE:
        return []
    bundles = (bundle for _, bundle in read_bundles(evidence.raw))
    marks_by_bundle = (_bundle_marks(evidence, replace(b, edited=False) if hidden else b) for b in bundles)
    return list(dict.fromkeys(mark for marks in marks_by_bundle for mark in marks))


def ran_of(evidence: Evidence, *, hidden: bool) -> list[str]:
    """The user that ran the script and what is hidden in the output, from its header; of a plain paste only what is
    known here. hidden: names were replaced before it was stored."""
    sentences: list[str] = []
    bundles = read_bundles(evidence.raw) if evidence.reader == BUNDLE else ()
    headers = [bundle.header for _, bundle in bundles if bundle.header]
    for header in headers:
        if header.uid:
            root = header.uid == "0"
            sentences.append("as root" if root else f"not as root (user {header.uid[:10]})")
    if not headers:
        sentences.append("it does not say as whom")
    if any(header.redacted for header in headers):
        sentences.append("names hidden by the script")
    elif hidden:
        sentences.append("names hidden before it was stored")
    else:
        sentences.append("names not hidden")
    return list(dict.fromkeys(sentences))


def _bundle_marks(evidence: Evidence, bundle: Bundle) -> list[str]:
    header = bundle.header
    if header is None:
        return ["The beginning is missing, so it does not say which script printed it."]
    marks = _script_marks(evidence.session, header)
    if not bundle.complete:
        marks.append("The end is missing: the output was cut.")
    elif bundle.edited:
        marks.append("The output was changed after the script printed it.")
    age = _age(header.time, evidence.created_at)
    if age and age > OLD:
        marks.append(f"It was printed {age.days} day{'s' * (age.days > 1)} before it was given.")
    return marks


def _script_marks(session: DiagnosisSession, header: Header) -> list[str]:
    script = HandedScript.objects.filter(session=session, nonce=header.nonce).first()
    if script is None:
        known = HandedScript.objects.filter(nonce=header.nonce).exists()
        where = "from another session" if known else "not from a script that was handed out here"
        return [f"It is {where}."]
    ran = header.ran_sha256 or header.script_sha256
    if {header.script_sha256, ran} != {script_sha256(script.text)}:
        return ["The script was changed before it ran."]
    probes = [all_probes()[name] for name in script.names if name in all_probes()]
    if _built_again(script, probes) != script.text:
        return ["It is from an older script: the one of today asks more or otherwise."]
    return []


def _age(printed: str, received: datetime) -> timedelta | None:
    try:
        return received - datetime.fromisoformat(printed)
    except (ValueError, TypeError):
        return None
