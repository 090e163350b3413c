"""Terms, one word a concept, the same on every screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    term: str
    text: str
    source: str = ""


GLOSSARY: tuple[Term, ...] = ()
