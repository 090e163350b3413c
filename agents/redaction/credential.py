"""Finds passwords, tokens and keys by their published form, or by the label before them."""

import re
from collections.abc import Iterator

from agents.redactor import Redactor, Span, clue, spans

# The forms that the services publish so that their tokens can be found.
_FORMS = (
    clue(r"\b(?P<secret>hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})", "hf_", "sk-"),
    clue(r"\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,})", "AKIA", "ASIA", "AIza"),
    clue(
        r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    ),
    clue(r"\b(?P<secret>xox[abprs]-[\w-]{10,}|nvapi-[\w-]{16,})", "xox", "nvapi-"),
    clue(r"\b(?P<secret>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})", "eyJ"),
    clue(r"(?i)\b(?:Bearer|Basic) +(?P<secret>[A-Za-z0-9._~+/-]{12,}=*)", "bearer", "basic"),
    clue(r"\bPVEAPIToken=[^\s!]{1,80}!(?P<secret>[^\s,;'\"<]{8,})", "PVEAPIToken"),
    clue(r"[a-z]://[^\s/:@]{1,80}:(?P<secret>[^\s/@<]{1,120})@", "://"),
    clue(
        r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-[\w-]+)(?: |%20)(?P<secret>AAAA[A-Za-z0-9+/=%]{20,}"
        r"(?: [\w.-]+@[\w.-]+)?[^\s'\"]*)",
        "AAAA",
    ),
)
# The dashes of the next block end a block that was cut.
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?!<)(?P<secret>(?:[^-]|-(?!----))*)")
_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "credential"),
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey"),
    *("secret_key", "secret-key", "private_key", "private-key", "auth_token", "auth-token"),
)
_LABELLED = (
    clue(
        rf"(?i)(?:{'|'.join(_WORDS)})s?[\"']?[ \t]*[:=][ \t]*\[?[\"']?"
        r"(?P<secret>[^\s'\",;\]}<>)]{3,200})",
        *_WORDS,
    ),
    # "token" alone is a word of language models; a secret one is long and no number or markup.
    clue(
        r"(?i)(?:[_-]|\b)token[\"']?[ \t]*[:=][ \t]*[\"']?"
        r"(?P<secret>(?=[^\s'\",;]{0,200}[a-z])(?=[^\s'\",;]{0,200}\d)[A-Za-z0-9_./+=~!@-]{12,200})",
        "token",
    ),
    clue(
        r"(?i)(?<![\w-])--(?:[a-z]+-){0,4}(?:api-key|token|password|secret)[ =][\"']?"
        r"(?P<secret>[^\s'\",;<>-][^\s'\",;<>]{5,200})",
        *("api-key", "token", "password", "secret"),
    ),
)
_NO_SECRET = re.compile(
    r"(?i)none|null|true|false|on|off|yes|no|set|unset|required|disabled|enabled|empty|changed|"
    r"\**|x+|\[?redacted\]?|\.{3,}|\$\S+|[\d.]+|prompt|not|is|for|the|and|file|path|env"
)


def find(text: str) -> Iterator[Span]:
    yield from spans(_FORMS, text, "secret")
    yield from (match.span("secret") for match in _PEM.finditer(text) if match["secret"].strip())
    for start, end in spans(_LABELLED, text, "secret"):
        if not _NO_SECRET.fullmatch(text[start:end]):
            yield start, end


redactor = Redactor(__name__, find, spreads=True)
