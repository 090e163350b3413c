"""Names, addresses and serials out of outputs before anything is stored or printed, if asked for."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from agents.archives import Member
from agents.framing import clean
from agents.redaction import Redacted
from webapp.records.models import DiagnosisSession, Pseudonym
from webapp.records.redaction import RedactionError, redact_apart, session_tokens


class Hiding:
    """Redacts the outputs of one case one after the other: the same secret gets the same token.

    tokens: secret -> token of the case's other texts. made: those that are new.
    """

    def __init__(self, tokens: Mapping[str, str] | None = None) -> None:
        self.tokens = dict(tokens or {})
        self._before = frozenset(self.tokens)
        self._counts: Counter[str] = Counter()

    @property
    def made(self) -> dict[str, str]:
        return {s: t for s, t in self.tokens.items() if s not in self._before and s != t.lower()}

    def members(self, members: Iterable[Member]) -> list[Member]:
        """Contents first, so that names learnt there are hidden in the paths too. Raises
        RedactionError."""
        hidden = [replace(m, data=self._redacted_text(clean(m.data)).encode()) for m in members]
        return [replace(m, path=self._redacted_text(m.path)) for m in hidden]

    def report(self) -> str:
        """ "2 host names, 1 uuid"; lines stay where they were."""
        if not self._counts:
            return "Nothing had to be hidden."
        parts = (f"{n} × {kind.replace('_', ' ')}" for kind, n in sorted(self._counts.items()))
        return f"Hidden before anything was kept: {', '.join(parts)}."

    def redacted(self, text: str) -> Redacted:
        """Raises RedactionError."""
        result = redact_apart(text, self.tokens)
        self.tokens = dict(result.tokens)
        self._counts.update({entry.kind: entry.count for entry in result.report})
        return result

    def _redacted_text(self, text: str) -> str:
        return self.redacted(text).text


def hide_members(session: DiagnosisSession, members: Iterable[Member]) -> tuple[list[Member], Hiding]:
    """The members as they may be stored in this session. Raises RedactionError; then nothing may be."""
    hiding = Hiding(session_tokens(session))
    hidden = hiding.members(members)
    known = remember(session, hiding.made)
    if known:
        pattern = re.compile("|".join(map(re.escape, known)))
        hidden = [
            replace(
                member,
                data=pattern.sub(lambda m: known[m[0]], member.data.decode()).encode(),
                path=pattern.sub(lambda m: known[m[0]], member.path),
            )
            for member in hidden
        ]
    return hidden, hiding


def remember(session: DiagnosisSession, made: Mapping[str, str]) -> dict[str, str]:
    """Keeps a keyed hash of each secret with its token. Returns new token -> the token that the secret
    has had in this session before."""
    digests = {
        salted_hmac(f"pseudonym {session.pk}", secret, algorithm="sha256").hexdigest(): token
        for secret, token in made.items()
    }
    known = dict(session.pseudonyms.filter(digest__in=digests).values_list("digest", "token"))
    new = [Pseudonym(session=session, digest=d, token=t) for d, t in digests.items() if d not in known]
    try:
        with transaction.atomic():
            Pseudonym.objects.bulk_create(new)
    except IntegrityError as error:
        raise RedactionError("Somebody gave another text at the same moment.") from error
    return {digests[digest]: token for digest, token in known.items()}
