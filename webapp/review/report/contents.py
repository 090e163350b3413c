"""What a report says, as plain values, already redacted if it has to be."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agents.framing import clean
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.claim import Claim, EvidenceRef
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.records.models import DiagnosisSession
from webapp.review.models import Decision
from webapp.review.threads import Thread, about, threads_of

Hide = Callable[[str], str]
LINES_CITED, LONGEST_LINE = 12, 400


@dataclass(frozen=True, slots=True)
class Source:
    """One output that is cited. number: how the text names it. lines: (number, text) of those meant.
    older: when it was got, where that was before the last change."""

    number: int
    name: str
    label: str
    sha256: str
    lines: tuple[tuple[int, str], ...]
    older: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """sources: numbers of the outputs it rests on."""

    text: str
    basis: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    statements: tuple[Statement, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """A thread: who said it (or "a person"), what about, and the answers."""

    who: str
    about: str
    stance: str
    text: str
    resolved: bool
    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    opened: str
    sample: bool
    paragraph: str
    parts: tuple[Part, ...]
    decisions: tuple[str, ...]
    remarks: tuple[Remark, ...]
    sources: tuple[Source, ...]
    redacted: bool


def report_of(session: DiagnosisSession, result: Diagnosis, hide: Hide | None) -> Report:
    """hide: redacts a text; then no person is named either."""
    plain = hide or (lambda text: text)
    sections = for_an_engineer(result)
    cited = _numbered(ref for section in sections for c in section.claims for ref in c.evidence)
    parts = tuple(
        Part(
            section.title,
            tuple(_statement(claim, cited, plain) for claim in section.claims),
            tuple(plain(note) for note in section.notes),
        )
        for section in sections
    )
    return Report(
        title=plain(session.title),
        opened=f"{session.created_at:%-d %B %Y}",
        sample=bool(session.sample),
        paragraph=plain(for_a_manager(result)),
        parts=parts,
        decisions=tuple(_decision(item, plain) for item in session.decisions.all()),
        remarks=tuple(_remark(thread, plain, bool(hide)) for thread in threads_of(session)),
        sources=tuple(_sources(session, cited, plain, result.facts.past)),
        redacted=hide is not None,
    )


def _numbered(refs: Iterable[EvidenceRef]) -> dict[str, tuple[int, list[int]]]:
    """Source -> its number and the lines cited, in order of first mention."""
    numbered: dict[str, tuple[int, list[int]]] = {}
    for ref in refs:
        numbered.setdefault(ref.source, (len(numbered) + 1, []))[1].append(ref.line)
    return numbered


def _statement(claim: Claim, cited: dict[str, tuple[int, list[int]]], plain: Hide) -> Statement:
    numbers = sorted({cited[ref.source][0] for ref in claim.evidence})
    return Statement(plain(claim.text), claim.known, tuple(numbers))


def _sources(
    session: DiagnosisSession, cited: dict[str, tuple[int, list[int]]], plain: Hide, past: frozenset[str]
) -> Iterable[Source]:
    stored = {f"{e.reader}@{e.sha256[:12]}": e.pk for e in session.evidence.defer("body", "stderr")}
    for name, (number, lines) in cited.items():
        if name not in stored:
            yield Source(number, name, "what the operator said", "", ())
            continue
        evidence = session.evidence.get(pk=stored[name])
        texts = clean(evidence.raw).split("\n")
        numbers_cited = [n for n in sorted(set(lines)) if 0 < n <= len(texts)][:LINES_CITED]
        cited_lines = tuple((n, plain(texts[n - 1][:LONGEST_LINE])) for n in numbers_cited)
        older = f"{evidence.created_at:%-d %B %Y, %H:%M}" if name in past else ""
        yield Source(number, name, plain(evidence.label), evidence.sha256, cited_lines, older)


def _decision(item: Decision, plain: Hide) -> str:
    chosen = ", ".join(o["title"] for o in item.options if o["id"] in item.chosen)
    text = f"{item.number}. {item.title} ({item.ended}): {chosen}. {item.reason}"
    return plain(f"{text} Outcome: {item.outcome}" if item.outcome else text)


def _remark(thread: Thread, plain: Hide, nameless: bool) -> Remark:
    def who(name: str) -> str:
        return "a person" if nameless else name

    first = thread.first
    return Remark(
        who(first.author.username),
        about(first.anchor),
        first.stance,
        plain(first.text),
        thread.resolved,
        tuple((who(r.author.username), plain(r.text)) for r in thread.replies),
    )
