"""What leaves a session is redacted, with the same tokens in everything that leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from uuid import UUID

from agents.framing import clean
from agents.redaction import Redacted, redact
from webapp.triage.models import DiagnosisSession, Evidence
from webapp.triage.read_apart import LARGE_BYTES, apart

TIMEOUT_S = 120.0


class RedactionError(Exception):
    """It could not be redacted; nothing may leave in its place."""


def redacted(evidence: Evidence) -> Redacted:
    """The evidence's output without secrets. Raises RedactionError."""
    return redact_apart(clean(evidence.raw), session_tokens(evidence.session))


def hiding(session: DiagnosisSession) -> Callable[[str], str]:
    """A function that redacts the texts of one document, one after the other."""
    tokens = dict(session_tokens(session))

    def hide(text: str) -> str:
        result = redact(text, tokens)
        tokens.update(result.tokens)
        return result.text

    return hide


def session_tokens(session: DiagnosisSession, until: int | None = None) -> Mapping[str, str]:
    """Secret -> token over all of the session's evidence in the order it came: a token that was
    given once stays, whatever comes later. until: the key of the last one that is read."""
    if until is None:
        until = session.evidence.order_by("pk").values_list("pk", flat=True).last()
    return _tokens(session.pk, until) if until else {}


def key_of(session: DiagnosisSession) -> dict[str, str]:
    """Token -> what it stands for, for those who may read the outputs as they came and nobody else. Raises
    RedactionError, bodies.LostError."""
    pairs = {token: secret for secret, token in session_tokens(session).items() if secret != token}
    return dict(sorted(pairs.items()))


@lru_cache(maxsize=16)
def _tokens(session_id: UUID, newest: int) -> Mapping[str, str]:
    """Evidence never changes, so that the newest one's key names them all."""
    found = Evidence.objects.filter(session=session_id, pk__lte=newest).order_by("pk")
    tokens: Mapping[str, str] = {}
    for evidence in found.iterator(chunk_size=1):
        for raw in (evidence.raw, bytes(evidence.stderr)):
            tokens = redact_apart(clean(raw), tokens).tokens
    return tokens


def redact_apart(text: str, tokens: Mapping[str, str]) -> Redacted:
    """In a process of its own when the text is large: the pages must not wait for it. Raises
    RedactionError."""
    if len(text) <= LARGE_BYTES:
        return redact(text, tokens)
    result = apart(redact, text, dict(tokens), timeout_s=TIMEOUT_S)
    if result is None:
        raise RedactionError(f"It could not be redacted within {TIMEOUT_S:.0f} s.")
    return result
