"""The pivot: which evidence changed which verdict, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webapp.diagnosis.answer.headline import headline
from webapp.diagnosis.diagnosis import judge
from webapp.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class Stage:
    """What was known at one moment. at: given by the caller, since this package has no clock."""

    title: str
    at: datetime
    facts: Facts


@dataclass(frozen=True, slots=True)
class Change:
    """subject: a hypothesis id, or "gate <name>". before "" at the first moment."""

    subject: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Pivot:
    title: str
    at: datetime
    headline: str
    changes: tuple[Change, ...]


def pivots(stages: Sequence[Stage], *, vmid: int | None = None) -> tuple[Pivot, ...]:
    """One entry a stage, with what changed since the stage before it. Open verdicts at the start are
    not a change: nothing was known."""
    moments: list[Pivot] = []
    before: dict[str, str] = {}
    for stage in stages:
        case = judge(stage.facts, vmid=vmid)
        after = {name: verdict.kind.value for name, verdict in case.verdicts.items()}
        after |= {f"gate {g.gate} ({g.path})": g.state.value for g in case.ladder}
        changes = tuple(
            Change(name, before.get(name, ""), state)
            for name, state in sorted(after.items())
            if state != before.get(name, _quiet(name))
        )
        moments.append(Pivot(stage.title, stage.at, headline(case), changes))
        before = after
    return tuple(moments)


def _quiet(name: str) -> str:
    return "unknown" if name.startswith("gate ") else "open"
