"""What the person on the host said and types, and what is odd about where an output comes from."""

from django import template

from webapp.diagnosis.scripts.model import PhaseScript
from webapp.handoff.models import Link
from webapp.handoff.scripts import marks_of
from webapp.pages.session.look import ANSWERS
from webapp.records.models import Evidence

register = template.Library()
AGREED = "--yes"


@register.filter
def host_words(link: Link) -> list[tuple[str, str]]:
    """What the person said of the host, each with its question, as their page puts it."""
    answers = link.answers
    changes = dict(ANSWERS["may_change"])
    roots = {"yes": "yes", "colleague": "a colleague has", "no": "no", "ask admin": "can be asked"}
    rows = (
        ("root there", roots.get(answers.get("host_root", ""), "")),
        ("why a VM", answers.get("why_vm", "")),
        ("may change", "; ".join(changes.get(c, c) for c in answers.get("may_change", []))),
        ("the VM is", str(answers.get("vm", "") or "")),
    )
    return [(what, text) for what, text in rows if text]


@register.filter
def marks(evidence: Evidence) -> list[str]:
    return marks_of(evidence)


@register.filter
def dry_run(script: PhaseScript) -> list[str]:
    """The lines that change nothing, without the check of the file's hash."""
    return [line for line in script.what_to_type if not line.endswith(AGREED) and not line.startswith("sha256sum")]


@register.filter
def real_run(script: PhaseScript) -> list[str]:
    return [line for line in script.what_to_type if line.endswith(AGREED)]
