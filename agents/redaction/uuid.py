"""UUIDs of GPUs, MIG devices, machines, VMs and file systems. The prefix (GPU-, MIG-) stays."""

import re
from collections.abc import Iterator

from agents.redactor import Redactor, Span, clue, spans

# Searched by the first hyphen; a look-behind checks the group before it.
_FULL = re.compile(
    r"-(?<=[0-9A-Fa-f]{8}-)(?<![0-9A-Za-z][0-9A-Fa-f]{8}-)"
    r"(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Za-z])"
)
# An invented UUID in the form that parsers want: a redacted output can be read again, and
# a VM is still found by the UUID that its guest shows.
_PLACEHOLDER = "00000000-0000-4000-8000-"
_FIRMWARE_DEFAULT = "03000200-0400-0500-0006-000700080009"
_OTHERS = (
    # A GPU's UUID may be abbreviated to its first group (CUDA_VISIBLE_DEVICES, logs).
    clue(r"\b(?:GPU|MIG)-(?P<id>[0-9a-f]{8})(?![0-9A-Za-z-])", "GPU-", "MIG-"),
    clue(r"(?i)\b(?:machine|boot)[ _-]?id[ \t]*[:=][ \t]*(?P<id>[0-9a-f]{32})\b", "machine", "boot"),
)


def find(text: str) -> Iterator[Span]:
    for match in _FULL.finditer(text):
        start, end = match.start() - 8, match.end()
        if not _is_nobodys(text[start:end]):
            yield start, end
    yield from spans(_OTHERS, text, "id")


def _is_nobodys(uuid: str) -> bool:
    """Whether the UUID is blank, a firmware's default or a placeholder."""
    blank = len(set(uuid) - {"-"}) == 1
    return blank or uuid.startswith(_PLACEHOLDER) or uuid == _FIRMWARE_DEFAULT


redactor = Redactor(__name__, find, form=_PLACEHOLDER + "{number:012}")
