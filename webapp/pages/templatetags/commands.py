"""What to type to run a script on the host."""

from django import template

from webapp.diagnosis.scripts.model import PhaseScript

register = template.Library()
AGREED = "--yes"


@register.filter
def dry_run(script: PhaseScript) -> list[str]:
    """The lines that change nothing, without the check of the file's hash."""
    return [line for line in script.what_to_type if not line.endswith(AGREED) and not line.startswith("sha256sum")]


@register.filter
def real_run(script: PhaseScript) -> list[str]:
    return [line for line in script.what_to_type if line.endswith(AGREED)]
