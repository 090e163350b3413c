"""A diagnosis as plain text for a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webapp.diagnosis.case import Bound, OptionStatus, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.claim import Claim, Range
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.naming import ACTORS, RESTARTS, in_words
from webapp.diagnosis.wording import most, span, unless

WIDTH = 100


def as_text(
    result: Diagnosis, unrecognised: Sequence[dict[str, Any]] = (), names: Mapping[str, str] | None = None
) -> str:
    """names: what each source is called, for the list at the end."""
    sections = (
        _answer(result),
        _bounds(result),
        _ladder(result),
        _hypotheses(result),
        _text_list("Contradictions", (item.text for item in result.contradictions)),
        _text_list("Findings", (c.text for f in result.findings for c in f.claims)),
        _text_list("Often believed, but not so", (f"“{c.belief}” {c.correct}" for c in result.corrections)),
        _text_list(
            "Next tests",
            (
                f"{t.title}: {t.how} ({t.minutes} min, restarts {RESTARTS[t.restart]}, by {ACTORS[t.actor]})"
                for t in result.next_tests
            ),
        ),
        _options(result),
        _text_list("Not recognised", (f"{u['source']} lines {u['lines'][0]}-{u['lines'][1]}" for u in unrecognised)),
    )
    cited = {ref.source for claim in _claims(result) for ref in claim.evidence}
    called = names or {}
    old = dict.fromkeys(result.facts.past, " (older: read before the last change)")
    named = (f"{s} = {called[s]}{old.get(s, '')}" for s in sorted(cited) if s in called)
    sources = _text_list("Sources", named)
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
        yield from _assumptions(bound) if bound is result.bounds[0] else ()


def _bound(bound: Bound) -> Iterator[str]:
    yield (
        f"  {bound.concurrency} at once: step {_ms(bound.step_ms)}, floor {_ms(bound.floor_ms)}, "
        f"communication {_ms(bound.comm_ms)}, unexplained {_ms(bound.unexplained_ms)}"
    )
    if bound.max_gain_remove_comm:
        gain = f"removing all communication gains at most {most(bound.max_gain_remove_comm)}"
        if bound.max_gain_p2p:
            gain += f", peer-to-peer at most {most(bound.max_gain_p2p)}"
        yield from textwrap.wrap(gain + unless(bound), WIDTH, initial_indent="    ", subsequent_indent="    ")
    if bound.goal_reachable_by_p2p is False:
        yield "    the goal is not reachable by peer-to-peer alone"
    for text in bound.missing:
        yield f"    missing: {in_words(text)}"


def _assumptions(bound: Bound) -> Iterator[str]:
    for text in bound.assumes:
        yield from textwrap.wrap(f"- assumed: {text}", WIDTH, initial_indent="    ", subsequent_indent="      ")


def _ms(value: Range | None) -> str:
    if value is None:
        return "unknown"
    return f"{span(value)} ms"


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
            yield from _claim(claim, result)
    if undecided:
        text = "open: " + "; ".join(claims[name].rstrip(".") for name in undecided)
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _claim(claim: Claim, result: Diagnosis) -> Iterator[str]:
    past = result.facts.past
    cited = (f"{r.source}:{r.line}{', older' if r.source in past else ''}" for r in claim.evidence[:2])
    where = ", ".join(cited)
    text = f"- {claim.text} [{claim.known}{'; ' + where if where else ''}]"
    yield from textwrap.wrap(text, WIDTH, initial_indent="      ", subsequent_indent="        ")


def _options(result: Diagnosis) -> Iterator[str]:
    statuses = {OptionStatus.RECOMMENDED, OptionStatus.UNSAFE, OptionStatus.BLOCKED, OptionStatus.NO_EFFECT}
    if result.advice:
        yield "Options"
    for option in all_options():
        advice = result.advice.get(option.id)
        if advice and advice.status in statuses:
            after = f" (after {advice.after.replace('_', ' ')})" if advice.after else ""
            yield f"  {option.phase} {advice.status.replace('_', ' '):<12} {option.title}{after}"
            for claim in advice.why[:2]:
                yield from _claim(claim, result)


def _text_list(title: str, texts: Iterator[str]) -> Iterator[str]:
    entries = list(texts)
    if entries:
        yield title
    for text in entries:
        yield from textwrap.wrap(text, WIDTH, initial_indent="  - ", subsequent_indent="    ")
