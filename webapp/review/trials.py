"""An A/B of one option: which run comes next, and what the runs so far say. The runs themselves hold it:
each is tagged with its trial and its step; of what was measured by hand an event says it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.benchmark import Benchmark, all_benchmarks
from webapp.accounts.models import User
from webapp.diagnosis.case import Actor
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.compare.kinds import KINDS, Kind, results
from webapp.diagnosis.compare.schedule import RUNS, Arm, Plan, Step, Trial, plan, trial
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.option import Option
from webapp.records.case_facts import facts_of
from webapp.records.intake import take_uploads
from webapp.records.models import DiagnosisSession, Event, Run, Target
from webapp.records.received import Upload
from webapp.review.models import DecisionState
from webapp.runs.benchmark_options import PREFIX, arguments_of, argv_of, offers
from webapp.runs.lifecycle import queue_benchmark
from webapp.runs.manual_run import ByHand, by_hand

TRIAL, STEP, ARM = "AB", "STEP", "ARM"  # among a run's arguments
GIVEN = "trial_given"  # the event of a step that was measured by hand
MEASURED_BY = ("bench.serving_load", "bench.allreduce", "bench.copy")
MOST_RUNS = 20
S = DecisionState
NOT_AGREED = (S.DRAFT, S.PROPOSED, S.REJECTED, S.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Setup:
    """What is tried: arm A is without the option, arm B with it. sets: NCCL settings that the measurement
    itself makes in arm B, "" when a person switches."""

    option: Option
    benchmark: Benchmark
    runs: int
    sets: str

    @property
    def token(self) -> str:
        return f"{self.option.id}|{self.benchmark.id}|{self.runs}|{self.sets}"

    @property
    def kind(self) -> Kind:
        return next(kind for kind in KINDS if kind.fact in self.benchmark.supplies)

    @property
    def plan(self) -> Plan:
        return plan(self.option.downtime, asks_engine=self.benchmark.engine_runs, runs=self.runs)

    @property
    def switches_itself(self) -> bool:
        return bool(self.sets)


def waits_for_approval(session: DiagnosisSession, setup: Setup) -> bool:
    """What somebody else carries out is tried once a decision for it was approved."""
    if setup.option.actor is Actor.OPERATOR:
        return False
    agreed = session.decisions.exclude(state__in=NOT_AGREED).values_list("chosen", flat=True)
    return not any(setup.option.id in chosen for chosen in agreed)


def proposed_for(session: DiagnosisSession, option: Option) -> int | None:
    """The number of a proposal that holds the option and waits for approval."""
    rows = session.decisions.filter(state=S.PROPOSED).order_by("-number")
    proposals = rows.values_list("number", "chosen")
    return next((number for number, chosen in proposals if option.id in chosen), None)


def choices() -> list[Option]:
    """Options that change something, and are tried without a new machine."""
    return [option for option in all_options() if option.changes and option.phase != "P5"]


def setup_of(fields: Mapping[str, str]) -> Setup:
    """Raises ValueError, in words for people."""
    option = next((o for o in choices() if o.id == fields.get("option")), None)
    name, runs = fields.get("benchmark", ""), fields.get("runs") or str(RUNS)
    if option is None or name not in MEASURED_BY:
        raise ValueError("Choose an option to try and what it is measured by.")
    if not runs.isdecimal() or not 2 <= int(runs[:6]) <= MOST_RUNS:
        raise ValueError(f"Between 2 and {MOST_RUNS} runs of each arm.")
    benchmark, sets = all_benchmarks()[name], fields.get("set", "").strip()
    if sets and "set" not in {choice.name for choice in benchmark.choices}:
        raise ValueError(f"{benchmark.title} cannot make settings itself; leave that empty.")
    arguments_of(benchmark, {f"{PREFIX}set": sets})
    return Setup(option, benchmark, int(runs), sets)


def started(session: DiagnosisSession) -> list[Setup]:
    """The trials that have a run or an output by hand."""
    setups: dict[str, Setup] = {}
    runs = session.runs.order_by().values_list("arguments", flat=True)
    handed = session.events.order_by().filter(kind=GIVEN).values_list("data", flat=True)
    for data in reversed(list(runs.union(handed, all=True))):
        token = str(data.get(TRIAL) or data.get("trial", ""))
        parts = dict(zip(("option", "benchmark", "runs", "set"), token.split("|"), strict=False))
        if token and token not in setups:
            try:
                setups[token] = setup_of(parts)
            except ValueError:  # of an option that is none any more
                continue
    return list(setups.values())


def arguments_for(setup: Setup, step: Step, facts: Facts) -> dict[str, str]:
    """Of the run of a step: what the session knows, the arm's settings, and the tags."""
    offer = next(o for o in offers(facts) if o.benchmark.id == setup.benchmark.id)
    values = {field.name: field.value for field in offer.fields}
    values[f"{PREFIX}set"] = setup.sets if step.arm is Arm.B else ""
    tags = {TRIAL: setup.token, STEP: str(step.number), ARM: str(step.arm)}
    return {**arguments_of(setup.benchmark, values), **tags}


def line_for(setup: Setup, step: Step, facts: Facts) -> ByHand | None:
    """The step as a person runs it."""
    words = argv_of(arguments_for(setup, step, facts))
    quoted = [shlex.quote(word) for word in words]
    return by_hand(setup.benchmark, quoted, f"-{step.number}{step.arm}")


def step_asked(session: DiagnosisSession, setup: Setup, so_far: Progress, number: str) -> Step:
    """The next step, where it is this one and its arm may be tried. Raises ValueError, in words."""
    step = so_far.next
    if step is None or str(step.number) != number:
        raise ValueError("Another step is next by now; look again.")
    if step.arm is Arm.B and waits_for_approval(session, setup):
        raise ValueError(f"{setup.option.title}: a decision for it has to be approved first.")
    return step


def step_start(
    session: DiagnosisSession, setup: Setup, facts: Facts, *, number: str, target: Target, user: User, yes: bool
) -> Run:
    """Queues the run of the next step. Raises ValueError, in words, and PermissionDenied."""
    so_far = progress(session, setup, facts)
    step = step_asked(session, setup, so_far, number)
    running = so_far.runs.get(step.number)
    if running and not running.ended:
        raise ValueError(f"Step {step.number} is being measured by run {running.number}.")
    if not yes:
        raise ValueError("Tick that the arm is in place and that the machine may be loaded.")
    arguments = arguments_for(setup, step, facts)
    return queue_benchmark(session, target, user, setup.benchmark.id, arguments)


def take_step(session: DiagnosisSession, setup: Setup, step: Step, uploads: Sequence[Upload], user: User) -> None:
    """What was measured by hand for a step. Raises ValueError, in words, where it holds no result, or one
    that was given before."""
    texts = take_uploads(session, uploads, user=user, label=f"step {step.number}, arm {step.arm}").texts
    names = {text.evidence.name for text in texts}
    known = {item.source for item in results(facts_of(session), setup.kind)}
    measured = names & known
    if not measured:
        raise ValueError(f"Nothing in it is a result of “{setup.benchmark.title}”; it was kept.")
    if measured & set(session.events.filter(kind=GIVEN).values_list("data__evidence", flat=True)):
        raise ValueError("The same output was given for a step before; each step is a new run.")
    about = {"trial": setup.token, "step": step.number, "arm": str(step.arm)}
    for name in sorted(measured):
        Event.record(session, GIVEN, user, **about, evidence=name, option=setup.option.title)


@dataclass(frozen=True, slots=True)
class Progress:
    """runs: of each step, newest. by_hand: names of outputs measured by hand, by step. measured: steps that
    have a result. next: None when all have."""

    runs: Mapping[int, Run]
    by_hand: Mapping[int, str]
    measured: frozenset[int]
    next: Step | None
    trial: Trial


def progress(session: DiagnosisSession, setup: Setup, facts: Facts) -> Progress:
    tagged = session.runs.filter(**{f"arguments__{TRIAL}": setup.token}).order_by("number")
    runs = {int(run.arguments[STEP]): run for run in tagged.prefetch_related("evidence")}
    steps = {step.number: step for step in setup.plan.steps}
    of_source = {
        evidence.name: steps[number]
        for number, run in runs.items()
        if number in steps
        for evidence in run.evidence.defer("body", "stderr")
    }
    rows = session.events.filter(kind=GIVEN, data__trial=setup.token).order_by("number")
    by_hand = {str(d["evidence"]): int(d["step"]) for d in rows.values_list("data", flat=True)}
    of_source |= {name: steps[number] for name, number in by_hand.items() if number in steps}
    pairs: list[tuple[Step, Sourced]] = [
        (of_source[item.source], item) for item in results(facts, setup.kind) if item.source in of_source
    ]
    verdict = trial(setup.plan, setup.kind, facts, pairs, frozenset(setup.option.changes))
    done = frozenset(step.number for step, _ in pairs)
    named = {number: name for name, number in by_hand.items()}
    return Progress(runs, named, done, setup.plan.next_after(done), verdict)
