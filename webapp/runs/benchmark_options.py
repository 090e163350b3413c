"""Which measurements can be started, what each costs and risks, and the arguments a person gave it.

Everything here comes from the benchmarks' own fields, so that a new one offers itself.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from agents.benchmark import Benchmark, Choice, all_benchmarks
from agents.facts.platform import REFERENCE_TOOLS
from agents.facts.workload import MODEL
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import observed_points, step_tokens
from webapp.runs.manual_run import ByHand, by_hand

PREFIX = "choice-"  # of the form's fields
ARGV = "ARGV"  # among a run's arguments
# Of a benchmark's arguments; the others say which A/B's step it was.
_PINNED = (ARGV, "INTERPRETER")


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as the page asks for it."""

    choice: Choice
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One measurement that can be started. cost and risk: sentences to read before. by_hand: its program as
    a file; None for a tool that is on the machine."""

    benchmark: Benchmark
    fields: tuple[Field, ...]
    cost: str
    risk: str
    consent: str
    by_hand: ByHand | None


def offers(facts: Facts) -> list[Offer]:
    """Those that load the GPUs first, then those that ask the engine; the shortest first."""
    known = _from_workload(facts)
    tools = facts.value(REFERENCE_TOOLS) or {}
    runnable = [b for b in all_benchmarks().values() if b.payload is not None or b.tool in tools]
    runnable.sort(key=lambda b: (b.engine_runs, b.duration_s, b.id))
    return [_offer(benchmark, known) for benchmark in runnable]


def _offer(benchmark: Benchmark, known: Mapping[str, str]) -> Offer:
    fields = tuple(Field(choice, f"{PREFIX}{choice.name}", _value(choice, known)) for choice in benchmark.choices)
    words = shlex.split(arguments_of(benchmark, {f.name: f.value for f in fields}).get(ARGV, ""))
    hand = by_hand(benchmark, [shlex.quote(word) for word in words])
    return Offer(benchmark, fields, cost(benchmark), risk(benchmark), _consent_text(benchmark), hand)


def cost(benchmark: Benchmark) -> str:
    ends = f"ended after {_duration(benchmark.timeout_s)} at the latest"
    if benchmark.engine_runs:
        return f"Loads the engine with requests for about {benchmark.duration_s} s; {ends}."
    return f"Loads all GPUs for about {benchmark.duration_s} s on two of them, longer on more; {ends}."


def risk(benchmark: Benchmark) -> str:
    if benchmark.engine_runs:
        return (
            "The server has to run and be idle: other requests would be measured along and would get "
            "slower. It is refused while the engine says that it is working. Nothing is installed."
        )
    memory = f", about {benchmark.gpu_memory_mib} MiB of memory on each" if benchmark.gpu_memory_mib else ""
    return (
        f"It wants the GPUs for itself{memory}: stop the server first. It is refused while other processes "
        "hold them. Nothing is installed, and what it starts is ended and checked."
    )


def _consent_text(benchmark: Benchmark) -> str:
    if benchmark.engine_runs:
        return "The server is idle, and may be loaded now."
    return "The server is stopped, and the GPUs may be loaded now."


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _from_workload(facts: Facts) -> dict[str, str]:
    """Defaults by the name of a choice, from the session's workload."""
    model = facts.value(MODEL)
    at_once = [point.concurrency for point in observed_points(facts)]
    tokens = sorted({round(step_tokens(facts, concurrency)) for concurrency in at_once})
    defaults = {
        "hidden": str(model.hidden_size) if model and model.hidden_size else "",
        "bytes": str(model.activation_bytes) if model and model.activation_bytes else "",
        "batch": ",".join(map(str, tokens)),
        "concurrency": ",".join(map(str, at_once)),
    }
    return {name: text for name, text in defaults.items() if text}


def _value(choice: Choice, known: Mapping[str, str]) -> str:
    """What is known where it fits, a list's first where only one is taken; else the default."""
    text = known.get(choice.name, "")
    for value in (text, text.partition(",")[0]):
        if value and re.fullmatch(choice.pattern, value):
            return value
    return choice.default


def arguments_of(benchmark: Benchmark, form: Mapping[str, str]) -> dict[str, str]:
    """A run's arguments from the form. A choice left empty is left to the program.

    Raises ValueError, with a text for people, for a value that its choice does not allow.
    """
    words: list[str] = []
    for choice in benchmark.choices:
        value = form.get(f"{PREFIX}{choice.name}", "").strip()
        if not value:
            continue
        if not re.fullmatch(choice.pattern, value):
            raise ValueError(f"{benchmark.title}: “{value[:60]}” is no value for “{choice.title}”.")
        words.append(f"--{choice.name}={value}")
    return {ARGV: shlex.join(words)} if words else {}


def pinned(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments of a benchmark that say what it measures, and with which Python."""
    return {name: arguments[name] for name in _PINNED if name in arguments}


def argv_of(arguments: Mapping[str, str]) -> list[str]:
    return shlex.split(arguments.get(ARGV, ""))
