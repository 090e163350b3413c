"""An output that a claim rests on, as pages name it and link it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.urls import reverse

MARKED_LINES = 40  # of an output, in one link


@dataclass(frozen=True, slots=True)
class Cited:
    """One output a claim rests on, and the lines meant in it, in order; none: all of it. older: when it
    was got, where that was before the last change. address: of its page; "" where nothing is linked."""

    source: str
    lines: tuple[int, ...]
    label: str
    older: datetime | None = None
    address: str = ""

    @property
    def text(self) -> str:
        if not self.lines:
            return self.label
        first, last = self.lines[0], self.lines[-1]
        return f"{self.label}:{first}" + (f"–{last}" if last > first else "")

    @property
    def query(self) -> str:
        return ",".join(map(str, self.lines[:MARKED_LINES]))


def address_of(session: Any, source: str) -> str:
    return _address(session.pk, source) if session else ""


@lru_cache(maxsize=4096)  # a page of claims links hundreds of times to a dozen outputs
def _address(session_id: UUID, source: str) -> str:
    return reverse("triage:evidence", args=[session_id, source])
