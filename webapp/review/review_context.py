"""What stands beside the vote: what a reviewer has to know, and what was said of the record so far."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.facts.bench import PROFILE
from webapp.accounts.models import User
from webapp.diagnosis.case import Bound, GateState, OptionStatus
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.review.models import Approval, Decision
from webapp.review.threads import Thread
from webapp.review.versions import Judged
from webapp.review.workflow import counting


@dataclass(frozen=True, slots=True)
class Known:
    """One thing that today's diagnosis says against haste. url: where it can be read."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Said:
    """A word on the record, or a thread about it. at: of its beginning. version: that the word was of,
    None where there is but one."""

    at: datetime
    word: Approval | None = None
    thread: Thread | None = None
    version: int | None = None


def known_before(result: Diagnosis, page: str) -> list[Known]:
    """Nothing of it forbids a yes. page: the address of the diagnosis."""
    return [*_profile(result, page), *_bounded(result, page), *_gates(result, page)]


def _profile(result: Diagnosis, page: str) -> Iterator[Known]:
    advice = result.advice.get("engine_profile")
    advised = advice is not None and advice.status is OptionStatus.RECOMMENDED
    if advised and result.facts.value(PROFILE) is None:
        yield Known("The diagnosis advises to profile the engine first; no profile was read.", f"{page}#next")


def _bounded(result: Diagnosis, page: str) -> Iterator[Known]:
    bound = min(result.bounds, key=lambda one: one.concurrency, default=None)
    if bound is None or bound.step_ms is None:
        yield Known("No speed was given, so that the gain of no change is bounded.", page)
        return
    url = f"{page}#bound-{bound.concurrency}"
    if bound.goal_reachable_by_p2p is False:
        yield Known("The goal is not reachable by peer-to-peer alone.", url)
    yield from _unexplained(bound, url)


def _unexplained(bound: Bound, url: str) -> Iterator[Known]:
    if bound.unexplained_ms is None or bound.step_ms is None or bound.unexplained_ms[1] <= 0:
        return
    low, high = (max(0.0, end) for end in bound.unexplained_ms)
    step = bound.step_ms[1]
    yield Known(f"{low:.0f} to {high:.0f} of {step:.0f} ms of a step are unexplained.", url)


def _gates(result: Diagnosis, page: str) -> Iterator[Known]:
    unknown = [gate for gate in result.ladder if gate.state is GateState.UNKNOWN]
    if unknown:
        names = ", ".join(dict.fromkeys(gate.gate for gate in unknown))
        are = "This gate is" if len(unknown) == 1 else "These gates are"
        yield Known(f"{are} open: {names}.", f"{page}#{unknown[0].path}-{unknown[0].gate}")


def said_on(
    decision: Decision, versions: Sequence[Judged], approvals: Iterable[Approval], threads: Sequence[Thread]
) -> list[Said]:
    """Words and threads in one list, oldest first: a reason is written once."""
    numbers = {word.pk: one.version.number for one in versions for word in one.words}
    here = [t for t in threads if t.first.anchor == f"decision:{decision.number}"]
    remarks = [Said(one.at, word=one, version=numbers.get(one.pk)) for one in approvals]
    remarks += [Said(thread.first.created_at, thread=thread) for thread in here]
    return sorted(remarks, key=lambda one: one.at)


def pins_cited(decision: Decision, facts: Facts) -> list[tuple[dict[str, Any], tuple[EvidenceRef, ...]]]:
    """Each pin with the lines of it that were read, to be shown as the diagnosis shows its evidence."""
    lines: dict[str, set[int]] = {}
    for group in facts.readings.values():
        for item in group:
            lines.setdefault(item.source, set()).update(item.reading.lines)
    return [
        (pin, tuple(EvidenceRef(pin["name"], line) for line in sorted(lines.get(pin["name"]) or {1})))
        for pin in decision.pins
    ]


def my_word(decision: Decision, approvals: Sequence[Approval], user: User) -> Approval | None:
    """What this person's newest word on the record as it stands is."""
    mine = [one for one in counting(decision, approvals) if one.by_id == user.pk]
    return mine[-1] if mine else None
