"""`bench TARGET NAME… [--json]`: runs benchmarks from the command line, without database or broker."""

import asyncio
import secrets
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from agents.agent import Agent, AgentError, Ending, Reason, Watch
from agents.benchmark import Benchmark, all_benchmarks
from agents.collector import build_script
from agents.facts import Reading, ReadingKind, View, all_facts
from agents.facts.bench import TELEMETRY
from agents.facts.platform import PYTHON_WITH_TORCH
from agents.framing import clean
from agents.interpreter import chosen_of, interpreter_of
from agents.probe import Output
from agents.probes import all_probes
from agents.raw_reading import read_output, read_raw
from webapp.runs.cli_target import Keys, agent_of, collect
from webapp.runs.results import held_back

USAGE, UNREACHABLE, PARTLY, INTERRUPTED = 2, 4, 5, 130


class Command(BaseCommand):
    help = (
        "Run benchmarks on TARGET (ssh://user@host:port or local:). They load its GPUs. With --json "
        "the results go to standard output line by line as they are measured; redirect them to a "
        "file for `compare`. Exit codes: 0 done, 2 usage, 4 unreachable or key refused, 5 partly or "
        "nothing measured."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", metavar="TARGET", help="ssh://user@host:port, or local:")
        parser.add_argument("names", metavar="NAME", nargs="+", help=", ".join(_runnable()))
        parser.add_argument("--json", action="store_true", help="print result lines as measured")
        parser.add_argument("--identity", type=Path, metavar="FILE", help="private key for ssh://")
        parser.add_argument("--known-hosts", type=Path, metavar="FILE", help="host keys to trust")
        parser.add_argument(
            "--python",
            metavar="PATH",
            help="interpreter, docker:NAME:PATH inside a container; default: one that has torch",
        )
        parser.add_argument("--options", metavar="TEXT", help='the program\'s own, --options="--sizes 12K"')

    def handle(self, *, target: str, names: list[str], **options: Any) -> None:
        try:
            agent = agent_of(target, Keys(options["identity"], options["known_hosts"]))
            benchmarks = [_benchmark_named(name) for name in names]
            extra = shlex.split(options["options"] or "")
            interpreter_of(options["python"] or "")
        except ValueError as error:
            self._stop(USAGE, str(error))
        except AgentError as error:
            self._stop(UNREACHABLE, str(error))
        stopping = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: stopping.set())
        try:
            python = options["python"] or _python_with_torch(agent)
            good = [self._run(agent, b, python, extra, options["json"], stopping) for b in benchmarks]
        except AgentError as error:
            self._stop(UNREACHABLE, str(error))
        finally:
            signal.signal(signal.SIGINT, before)
        if stopping.is_set():
            raise SystemExit(INTERRUPTED)
        if not all(good):
            raise SystemExit(PARTLY)

    def _run(
        self,
        agent: Agent,
        benchmark: Benchmark,
        python: str,
        extra: list[str],
        as_json: bool,
        stopping: threading.Event,
    ) -> bool:
        """One after the other: two at once would measure each other. Whether it ended well."""
        if stopping.is_set():
            return False
        self._note(f"{benchmark.title}: loads the machine for about {benchmark.duration_s} s …")
        pieces: list[bytes] = []

        def heard(piece: bytes) -> None:
            pieces.append(piece)
            if as_json:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()

        ending = asyncio.run(_measure(agent, benchmark, python, extra, heard, stopping))
        raw, stderr = b"".join(pieces), clean(ending.stderr)
        readings = read_output(benchmark.id, Output(clean(raw), stderr, ending.exit_code))
        anything = _anything(readings)
        self._note(f"{benchmark.title}: {_ending_text(ending, anything)}{_slowdown_text(readings)}")
        if not as_json:
            self.stdout.writelines(f"{line}\n" for line in _summary(readings))
        return ending.reason is Reason.FINISHED and ending.exit_code == 0 and anything

    def _note(self, text: str) -> None:
        self.stderr.write(text)
        self.stderr.flush()

    def _stop(self, code: int, message: str) -> NoReturn:
        self.stderr.write(message)
        raise SystemExit(code)


async def _measure(
    agent: Agent, benchmark: Benchmark, python: str, extra: list[str], heard: Any, stopping: threading.Event
) -> Ending:
    return await agent.run_payload(
        benchmark.payload_source(),
        [*benchmark.argv, *extra],
        interpreter=python,
        watch=Watch(heard, benchmark.timeout_s, stopping.is_set),
    )


def _runnable() -> list[str]:
    return [b.id.removeprefix("bench.") for b in all_benchmarks().values() if b.payload]


def _benchmark_named(name: str) -> Benchmark:
    """The benchmark of this id, with or without "bench.". Raises ValueError."""
    benchmark = all_benchmarks().get(f"bench.{name.removeprefix('bench.')}")
    if benchmark is None or benchmark.payload is None:
        raise ValueError(f"There is no benchmark {name!r} to run; there are {', '.join(_runnable())}.")
    return benchmark


def _python_with_torch(agent: Agent) -> str:
    """The interpreter the guest's own probes find torch in; python3 when they find none."""
    probes = [probe for probe in all_probes().values() if PYTHON_WITH_TORCH in probe.supplies]
    script = build_script(probes, role=View.GUEST, nonce=secrets.token_hex(8))
    contents = read_raw(collect(agent, script), role=View.GUEST)
    readings = (r for item in contents.items for r in item.readings)
    values = (r.value for r in readings if r.fact_id == PYTHON_WITH_TORCH.id)
    return chosen_of(value for value in values if value) or "python3"


def _ending_text(ending: Ending, anything: bool) -> str:
    stderr = clean(ending.stderr).strip()[-500:]
    if ending.reason is not Reason.FINISHED:
        left = " Some of its processes are still alive." if ending.leftover else ""
        return f"{ending.reason.replace('_', ' ')}; what was measured by then counts.{left}"
    if ending.exit_code == 0 and anything:
        return "done"
    nothing = "" if anything else ", and nothing was measured"
    return f"exit code {ending.exit_code}{nothing}. {stderr}".strip()


def _anything(readings: Iterable[Reading[Any]]) -> bool:
    """Whether something was measured; what the GPUs did meanwhile is no measurement by itself."""
    fact_ids = (r.fact_id for r in readings if r.kind is ReadingKind.KNOWN)
    return any(fact_id != TELEMETRY.id for fact_id in fact_ids)


def _slowdown_text(readings: Iterable[Reading[Any]]) -> str:
    """What lowered its figures below the machine's."""
    looks = (r.value or () for r in readings if r.fact_id == TELEMETRY.id)
    slowed = held_back(gpu for gpus in looks for gpu in gpus)
    return f"; the GPUs were slowed by {', '.join(slowed)} while it measured" if slowed else ""


def _summary(readings: Iterable[Reading[Any]]) -> Iterator[str]:
    for reading in readings:
        title = all_facts()[reading.fact_id].title
        if reading.kind is not ReadingKind.KNOWN:
            yield f"{title}: {reading.kind}. {reading.detail}"
            continue
        yield title
        for row in getattr(reading.value, "rows", (reading.value,)):
            yield f"  {_fields(row)}"


def _fields(row: Any) -> str:
    if not is_dataclass(row) or isinstance(row, type):
        return str(row)
    cells = {key: value for key, value in asdict(row).items() if value is not None}
    return "  ".join(f"{key}={value}" for key, value in cells.items())
