"""What leaves a session is redacted, with the same tokens in everything that leaves it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from agents.framing import clean
from agents.redaction import Redacted, redact
from webapp.records.models import DiagnosisSession, Evidence
from webapp.records.parse_process import LARGE_BYTES, apart

TIMEOUT_S = 120.0
AT_A_TIME = 16  # outputs, of at most a block each: what is longer lies elsewhere
MOST_KNOWN = 16
Printed = tuple[bytes, bytes]  # an output and its errors
# Session and its newest evidence -> tokens: evidence never changes, so that the newest one names them all.
_known: dict[tuple[UUID, int], Mapping[str, str]] = {}


class RedactionError(Exception):
    """It could not be redacted; nothing may leave in its place."""


def redacted(evidence: Evidence) -> Redacted:
    """The evidence's output without secrets. Raises RedactionError."""
    return redact_apart(clean(evidence.raw), session_tokens(evidence.session))


def with_report(result: Redacted) -> bytes:
    """The redacted text, and below it, so that its line numbers stay, what was hidden in which lines."""
    report = [
        f"# redacted: {entry.kind.replace('_', ' ')}, {entry.count} in line"
        f"{'' if len(entry.lines) == 1 else 's'} {', '.join(map(str, entry.lines[:20]))}"
        f"{' and others' if len(entry.lines) > 20 else ''}"
        for entry in result.report
    ]
    return "\n".join([result.text.rstrip("\n"), *report, ""]).encode()


def hiding(session: DiagnosisSession) -> Callable[[str], str]:
    """A function that redacts the texts of one document, one after the other."""
    tokens = dict(session_tokens(session))

    def hide(text: str) -> str:
        result = redact(text, tokens)
        tokens.update(result.tokens)
        return result.text

    return hide


def session_tokens(
    session: DiagnosisSession, until: int | None = None, printed: Iterable[Printed] | None = None
) -> Mapping[str, str]:
    """The token of each secret, over all of the session's evidence in order: a token stays once it is given. until:
    the key of the last evidence that is read; printed: its outputs, when the caller has them. Raises
    RedactionError, LostError."""
    if until is None:
        until = session.evidence.order_by("pk").values_list("pk", flat=True).last()
    key = (session.pk, until or 0)
    tokens = _known.get(key)
    if tokens is None:
        tokens = _printed_tokens(printed_by(*key) if printed is None else printed)
        _known[key] = tokens
        for old in list(_known)[:-MOST_KNOWN]:
            _known.pop(old, None)
    return tokens


def key_of(session: DiagnosisSession) -> dict[str, str]:
    """The secret of each token, only for people who may read the original outputs. Raises RedactionError,
    LostError."""
    pairs = {token: secret for secret, token in session_tokens(session).items() if secret != token}
    return dict(sorted(pairs.items()))


def printed_by(session_id: UUID, until: int) -> Iterator[Printed]:
    """In order, up to the evidence of that key. Raises LostError."""
    outputs = Evidence.objects.filter(session=session_id, pk__lte=until).order_by("pk")
    outputs = outputs.only("purged_at", "place", "sha256", "body", "stderr")
    for evidence, raw in Evidence.with_raw(outputs.iterator(chunk_size=AT_A_TIME)):
        yield raw, bytes(evidence.stderr)


def _printed_tokens(printed: Iterable[Printed]) -> Mapping[str, str]:
    tokens: Mapping[str, str] = {}
    for both in printed:
        for raw in both:
            tokens = redact_apart(clean(raw), tokens).tokens
    return tokens


def redact_apart(text: str, tokens: Mapping[str, str]) -> Redacted:
    """Redacts in a separate process when the text is large: the pages must not wait for it. Raises RedactionError."""
    if not text:  # as most outputs' errors
        return Redacted("", (), tokens)
    if len(text) <= LARGE_BYTES:
        return redact(text, tokens)
    result = apart(redact, text, dict(tokens), timeout_s=TIMEOUT_S)
    if result is None:
        raise RedactionError(f"It could not be redacted within {TIMEOUT_S:.0f} s.")
    return result
