"""A diagnosis as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webapp.diagnosis.case import Bound, OptionStatus, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.claim import Claim, Range
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.naming import in_words
from webapp.diagnosis.wording import most, unless

WIDTH = 100


def as_text(
    result: Diagnosis,
    unrecognised: Sequence[dict[str, Any]] = (),
    names: Mapping[str, str] | None = None,
) -> str:
    """names: what each source is called, for the list at the end."""
    sections = (
        _answer(result),
        _bounds(result),
        _ladder(result),
        _hypotheses(result),
        _listed("Contradictions", (item.text for item in result.contradictions)),
        _listed("Findings", (c.text for f in result.findings for c in f.claims)),
        _listed(
            "Often believed, but not so", (f"“{c.belief}” {c.correct}" for c in result.corrections)
        ),
        _listed(
            "Next tests",
            (
                f"{t.id}: {t.how} ({t.minutes} min, restarts: {t.restart}, by {t.actor})"
                for t in result.next_tests
            ),
        ),
        _options(result),
        _listed(
            "Not recognised",
            (f"{u['source']} lines {u['lines'][0]}-{u['lines'][1]}" for u in unrecognised),
        ),
    )
    cited = {ref.source for claim in _claims(result) for ref in claim.evidence}
    called = names or {}
    sources = _listed("Sources", (f"{s} = {called[s]}" for s in sorted(cited) if s in called))
    texts = ("\n".join(section) for section in (*sections, sources))
    return "\n\n".join(text for text in texts if text)


def _claims(result: Diagnosis) -> Iterator[Claim]:
    for verdict in result.verdicts.values():
        yield from (*verdict.for_, *verdict.against)
    for advice in result.advice.values():
        yield from advice.why


def _answer(result: Diagnosis) -> Iterator[str]:
    yield result.headline
    yield from textwrap.wrap(result.summary, WIDTH)


def _bounds(result: Diagnosis) -> Iterator[str]:
    if result.bounds:
        yield "Where the time per step goes"
    for bound in result.bounds:
        yield from _bound(bound)


def _bound(bound: Bound) -> Iterator[str]:
    yield (
        f"  {bound.concurrency} at once: step {_ms(bound.step_ms)}, floor {_ms(bound.floor_ms)}, "
        f"communication {_ms(bound.comm_ms)}, unexplained {_ms(bound.unexplained_ms)}"
    )
    if bound.max_gain_remove_comm:
        gain = f"removing all communication gains at most {most(bound.max_gain_remove_comm)}"
        if bound.max_gain_p2p:
            gain += f", peer-to-peer at most {most(bound.max_gain_p2p)}"
        yield from textwrap.wrap(
            gain + unless(bound), WIDTH, initial_indent="    ", subsequent_indent="    "
        )
    if bound.goal_reachable_by_p2p is False:
        yield "    the goal is not reachable by peer-to-peer alone"
    for text in bound.missing:
        yield f"    missing: {in_words(text)}"


def _ms(value: Range | None) -> str:
    if value is None:
        return "unknown"
    low, high = (f"{end:.1f}" for end in value)
    return f"{low} ms" if low == high else f"{low}-{high} ms"


def _ladder(result: Diagnosis) -> Iterator[str]:
    if result.ladder:
        yield "Peer-to-peer ladder"
    for gate in result.ladder:
        yield from textwrap.wrap(
            f"{gate.path:<7}{gate.gate:<11}{gate.state.replace('_', ' '):<15}{gate.why}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent=" " * 35,
        )


def _hypotheses(result: Diagnosis) -> Iterator[str]:
    claims = {h.id: h.claim for h in all_hypotheses()}
    decided = [(n, v) for n, v in result.verdicts.items() if v.kind is not VerdictKind.OPEN]
    undecided = [n for n, v in result.verdicts.items() if v.kind is VerdictKind.OPEN]
    if decided or undecided:
        yield "Hypotheses"
    for name, verdict in decided:
        yield f"  {verdict.kind:<10} {claims[name]}"
        for claim in (*verdict.for_, *verdict.against):
            yield from _claim(claim)
    if undecided:
        yield from textwrap.wrap(
            f"open: {', '.join(undecided)}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def _claim(claim: Claim) -> Iterator[str]:
    where = ", ".join(f"{ref.source}:{ref.line}" for ref in claim.evidence[:2])
    text = f"- {claim.text} [{claim.known}{'; ' + where if where else ''}]"
    yield from textwrap.wrap(text, WIDTH, initial_indent="      ", subsequent_indent="        ")


def _options(result: Diagnosis) -> Iterator[str]:
    shown = {
        OptionStatus.RECOMMENDED,
        OptionStatus.UNSAFE,
        OptionStatus.BLOCKED,
        OptionStatus.NO_EFFECT,
    }
    if result.advice:
        yield "Options"
    for option in all_options():
        advice = result.advice.get(option.id)
        if advice and advice.status in shown:
            after = f" (after {advice.after.replace('_', ' ')})" if advice.after else ""
            yield f"  {option.phase} {advice.status.replace('_', ' '):<12} {option.title}{after}"
            for claim in advice.why[:2]:
                yield from _claim(claim)


def _listed(title: str, texts: Iterator[str]) -> Iterator[str]:
    found = list(texts)
    if found:
        yield title
    for text in found:
        yield from textwrap.wrap(text, WIDTH, initial_indent="  - ", subsequent_indent="    ")
