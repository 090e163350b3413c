"""Pages name and link each output that a claim rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

MARKED_LINES = 40  # of one output, in one link


@dataclass(frozen=True, slots=True)
class Cited:
    """One output that a claim rests on, with the cited lines in order; no lines: the whole output. older: the time
    of the output, if it is from before the last change. address: of its page; "" without a link."""

    label: str
    lines: tuple[int, ...]
    older: datetime | None = None
    address: str = ""

    @property
    def text(self) -> str:
        if not self.lines:
            return self.label
        first, last = self.lines[0], self.lines[-1]
        return f"{self.label}:{first}" + (f"–{last}" if last > first else "")

    @property
    def link(self) -> SafeString:
        """To its page at the first of the lines; the text alone if there is no address."""
        if not self.address:
            return format_html('<span class="ev">{}</span>', self.text)
        at = ""
        if self.lines:
            marked = ",".join(map(str, self.lines[:MARKED_LINES]))
            at = f"?line={marked}#L{self.lines[0]}"
        return format_html('<a class="ev" href="{}">{}</a>', self.address + at, self.text)


def cited(context: Any, source: str, lines: tuple[int, ...]) -> Cited:
    """An output with the name and the link that this template context gives it."""
    session = context.get("session")
    if session and "workload@" in source:  # a person's statement has its own page, and no lines
        return Cited("what the operator said", (), address=_symptom_address(session.pk))
    labels: Mapping[str, str] = context.get("labels") or {}
    return Cited(
        labels.get(source, source.partition("@")[0]),
        lines,
        (context.get("older") or {}).get(source),
        _source_address(session.pk, source) if session else "",
    )


@lru_cache(maxsize=4096)  # one page of claims has hundreds of links to a dozen outputs
def _source_address(session_id: UUID, source: str) -> str:
    return reverse("session:evidence", args=[session_id, source])


@lru_cache(maxsize=256)
def _symptom_address(session_id: UUID) -> str:
    return reverse("session:symptom", args=[session_id])
