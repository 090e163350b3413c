"""Takes secrets and names out of a text, consistently: the same secret gets the same token.

One module per kind, each with a module-level `redactor`, found by walking this package.
"""

import importlib
import pkgutil
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from agents.redactor import Redactor

_WORD = re.compile(r"[0-9A-Za-z_]+")
_TOKEN = re.compile(r"<[a-z]+-(\d{1,6})>|\b0{8}-0{4}-40{3}-80{3}-0{6}(\d{6})\b")
_NUMBER = "0123456789>"  # how a token ends
# A machine or a person may have such a name; it is replaced only where the context shows a name.
_TOOL_WORDS = frozenset(
    {
        *("admin", "amd", "bond", "bridge", "card", "cluster", "compute", "cpu", "cuda"),
        *("data", "debian", "default", "desktop", "device", "disk", "docker", "driver"),
        *("engine", "epyc", "eth", "gateway", "gpu", "guest", "home", "host", "hostpci"),
        *("infer", "inference", "intel", "kernel", "kvm", "lab", "linux", "llama", "llm"),
        *("local", "main", "memory", "model", "nccl", "net", "network", "nic", "node", "none"),
        *("nvidia", "nvme", "ollama", "operator", "pci", "pcie", "peer", "pool", "port", "prod"),
        *("proxmox", "pytorch", "qemu", "rack", "root", "server", "service", "sglang", "slot"),
        *("storage", "system", "test", "torch", "ubuntu", "user", "vfio", "virtual", "vllm"),
        *("windows", "worker", "workstation"),
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """The replacements of one kind. count: places; lines: 1-based, each once."""

    kind: str
    count: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Redacted:
    """tokens: secret in lower case -> its token; give it as `keep` for the next text of the case."""

    text: str
    report: tuple[Entry, ...]
    tokens: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    kind: str


@cache
def all_redactors() -> tuple[Redactor, ...]:
    """Every redactor, in order of module. Raises AttributeError when a file holds none."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(f"{__name__}.{name}").redactor for name in names)


def redact(text: str, keep: Mapping[str, str] | None = None) -> Redacted:
    """The text with every secret replaced; line numbers stay. It raises nothing on any text.

    keep: the tokens of the case's other texts. A secret there is a secret here, and a name learnt there is replaced
    here even where no context shows that it is a name.
    """
    tokens = dict(keep or {})
    own_hits = [_Hit(*span, r.kind) for r in all_redactors() for span in r.find(text)]
    known = {text[hit.start : hit.end].lower(): hit.kind for hit in own_hits}
    known |= _learnt_before(text, tokens)
    hits = _merge_overlaps([*own_hits, *_named_hits(text, known)])
    pieces: list[str] = []
    end = 0
    numbers: dict[str, int] = {}
    for hit in hits:
        secret = text[hit.start : hit.end]
        token = tokens.get(secret.lower())
        if token is None:
            numbers = numbers or _numbers(text, tokens)
            numbers[hit.kind] += 1
            token = _redactor(hit.kind).token(numbers[hit.kind])
            tokens[secret.lower()] = token
        pieces += (text[end : hit.start], token, "\n" * secret.count("\n"))
        end = hit.end
    pieces.append(text[end:])
    # The tokens of a text that was redacted before are reserved: no other secret of the case may get them.
    tokens |= {match[0]: match[0] for match in _TOKEN.finditer(text) if match[0] not in tokens}
    return Redacted("".join(pieces), _report(text, hits), tokens)


def kind_of(token: str) -> str | None:
    """The kind of secret that a token stands for; None when it is no token."""
    return next((kind for kind, _ in _tokens_in(token)), None)


@cache
def _redactor(kind: str) -> Redactor:
    return next(redactor for redactor in all_redactors() if redactor.kind == kind)


def _learnt_before(text: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """Secret -> kind, only of secrets whose words are in the text: a case may have learnt 100,000."""
    words = set(_WORD.findall(_lower(text)))
    return {
        secret: kind
        for secret, token in tokens.items()
        if secret != token and words.issuperset(_WORD.findall(secret))
        for kind, _ in _tokens_in(token)
    }


def _lower(text: str) -> str:
    return text.replace("\u0130", "i").lower()  # the one letter that grows; positions must stay


def _tokens_in(text: str) -> Iterator[tuple[str, int]]:
    """(kind, number) of every token in the text."""
    for match in _TOKEN.finditer(text):
        number = int(match[1] or match[2])
        redactor = _by_shape().get(match[0].rstrip(_NUMBER))
        if redactor and redactor.token(number) == match[0]:
            yield redactor.kind, number


@cache
def _by_shape() -> Mapping[str, Redactor]:
    """The redactors by the prefix of their tokens."""
    return {redactor.token(1).rstrip(_NUMBER): redactor for redactor in all_redactors()}


def _named_hits(text: str, known: Mapping[str, str]) -> Iterator[_Hit]:
    """The places where known names appear as whole words."""
    index: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for secret, kind in known.items():
        first = _WORD.search(secret)
        if first and _redactor(kind).spreads and _is_distinctive(secret):
            index[first[0]].append((secret, first.start()))
    if not index:
        return
    lower = _lower(text)
    initials = "".join(sorted({word[0] for word in index}))
    for word in re.finditer(rf"[{initials}](?<![0-9A-Za-z_].)[0-9A-Za-z_]*", lower):
        for secret, offset in index.get(word[0], ()):
            start = word.start() - offset
            end = start + len(secret)
            if start >= 0 and lower.startswith(secret, start) and _stands_alone(lower, start, end):
                yield _Hit(start, end, known[secret])


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return not (
        (_WORD.match(before) and _WORD.match(text[start])) or (_WORD.match(after) and _WORD.match(text[end - 1]))
    )


def _is_distinctive(secret: str) -> bool:
    """Whether the name may be replaced without context: "gpu0" may not."""
    return len(secret) >= 4 and secret.strip("0123456789-_.") not in _TOOL_WORDS


def _merge_overlaps(hits: Iterable[_Hit]) -> list[_Hit]:
    """The hits in order; overlapping ones become one, of the widest one's kind."""
    result: list[_Hit] = []
    widest = 0
    for hit in sorted(hits, key=lambda h: (h.start, -h.end)):
        width = hit.end - hit.start
        if result and hit.start < result[-1].end:
            last = result[-1]
            kind = hit.kind if width > widest else last.kind
            result[-1] = _Hit(last.start, max(last.end, hit.end), kind)
            widest = max(widest, width)
        elif width:
            result.append(hit)
            widest = width
    return result


def _numbers(text: str, tokens: Mapping[str, str]) -> dict[str, int]:
    """The highest number of each kind in use, in the case or in a text redacted before."""
    highest: dict[str, int] = defaultdict(int)
    for source in (text, "\n".join(tokens.values())):
        for kind, number in _tokens_in(source):
            highest[kind] = max(highest[kind], number)
    return highest


def _report(text: str, hits: Iterable[_Hit]) -> tuple[Entry, ...]:
    breaks = [match.start() for match in re.finditer("\n", text)]
    lines: dict[str, list[int]] = defaultdict(list)
    for hit in hits:
        lines[hit.kind].append(bisect_right(breaks, hit.start) + 1)
    return tuple(Entry(kind, len(numbers), tuple(sorted(set(numbers)))) for kind, numbers in sorted(lines.items()))
