"""A report as Markdown."""

from collections.abc import Iterator

from webapp.review.madr import literal
from webapp.review.report.contents import Remark, Report, Source, Statement


def as_markdown(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {literal(report.title)}"
    yield ""
    kind = " of a reconstructed case" if report.sample else ""
    yield f"Peerpath diagnosis{kind}, opened {report.opened}."
    yield from ("", literal(report.paragraph))
    for part in report.parts:
        yield from ("", f"## {literal(part.title)}", "")
        yield from map(_statement, part.statements)
        yield from (f"- {literal(note)}" for note in part.notes)
    if report.decisions:
        yield from ("", "## Decisions", "", *(f"- {literal(text)}" for text in report.decisions))
    if report.remarks:
        yield from ("", "## What people said", "", *map(_remark, report.remarks))
    yield from ("", "## Evidence", "")
    for source in report.sources:
        yield from _source(source)


def _statement(statement: Statement) -> str:
    numbers = "".join(f" [{n}]" for n in statement.sources)
    basis = "" if statement.basis in statement.text else f" ({statement.basis})"
    return f"- {literal(statement.text)}{basis}{numbers}"


def _remark(remark: Remark) -> str:
    stance = f" {remark.stance}s" if remark.stance else ""
    about = f" on {literal(remark.about)}" if remark.about else ""
    state = " (resolved)" if remark.resolved else ""
    answers = "".join(f"\n  - {literal(who)}: {literal(text)}" for who, text in remark.answers)
    return f"- {literal(remark.who)}{stance}{about}{state}: {literal(remark.text)}{answers}"


def _source(source: Source) -> Iterator[str]:
    label = f" {literal(source.label)}" if source.label else ""
    digest = f", sha256 `{source.sha256}`" if source.sha256 else ""
    older = f", read before the last change, {source.older}" if source.older else ""
    yield f"{source.number}. `{source.name}`{label}{digest}{older}"
    for number, text in source.lines:
        yield f"   - line {number}: {literal(text)}"
