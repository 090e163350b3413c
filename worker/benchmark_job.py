"""A run of one benchmark: sends its payload, keeps its output, and reads it when it has ended."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import QuerySet

from agents.agent import Agent, AgentError, Ending, Watch
from agents.benchmark import Benchmark, all_benchmarks
from agents.facts import Fact, ReadingKind
from agents.facts.bench import TELEMETRY
from agents.facts.platform import PYTHON_WITH_TORCH, REFERENCE_TOOLS
from agents.framing import clean
from agents.interpreter import chosen_of
from agents.parsing import payload_lines
from webapp.records import intake
from webapp.records.models import Run, RunState, StoredReading
from webapp.runs import lifecycle
from webapp.runs.benchmark_options import argv_of
from worker.agent_loop import Work
from worker.recovery import try_store

_MOST_REFUSAL = 1 << 16  # bytes: a header, notes and the reason
_COPY_DAMAGED = 3  # the agents' wrapper says so by this exit code


@dataclass(slots=True)
class BenchmarkJob:
    run: Run
    claim: lifecycle.Claim
    nonce: str = ""
    output: bytearray = field(default_factory=bytearray)
    unread: bool = False  # the storage took nothing; what was printed is recovered

    def work(self, agent: Agent) -> Work:
        benchmark = self._benchmark
        program = benchmark.payload_source()
        interpreter = "sh" if benchmark.tool else self._interpreter()
        tool = (self._tool(benchmark.tool),) if benchmark.tool else ()
        return lambda on_output, cancelled: agent.run_payload(
            program,
            (*tool, *benchmark.argv, *argv_of(self.run.arguments)),
            interpreter=interpreter,
            watch=Watch(on_output, benchmark.timeout_s, cancelled),
        )

    @property
    def script_sha256(self) -> str:
        """Hash of the program that is sent, as the page shows it."""
        return hashlib.sha256(self._benchmark.payload_source()).hexdigest()

    @property
    def _benchmark(self) -> Benchmark:
        return all_benchmarks()[self.run.names[0]]

    def _interpreter(self) -> str:
        """The interpreter of the run's arguments, else the one in which the probe found torch, else python3."""
        return self.run.arguments.get("INTERPRETER", "") or self._torch_interpreter() or "python3"

    def _torch_interpreter(self) -> str:
        return chosen_of(str(value) for value in self._answers_to(PYTHON_WITH_TORCH))

    def _tool(self, name: str) -> str:
        """Raises AgentError when no probe has found it on this very machine."""
        for tools in self._answers_to(REFERENCE_TOOLS):
            if isinstance(tools, dict) and name in tools:
                return str(tools[name])
        raise AgentError(f"{name} was not found on this machine. Run the guest's probes there first.")

    def _answers_to(self, fact: Fact[Any]) -> Iterable[Any]:
        """The last value of each probe on this very machine. Pastes do not count: they must not name a program to
        run."""
        stored = StoredReading.objects.filter(
            evidence__run__target=self.run.target, fact_id=fact.id, kind=ReadingKind.KNOWN
        ).order_by("pk")
        return dict(stored.values_list("evidence__reader", "value")).values()

    def take(self, piece: bytes) -> None:
        self.output += piece

    def close(self) -> None:
        """A benchmark that was stopped half-way has still measured something."""
        if self.output:
            store = partial(intake.take_benchmark_output, self.run, bytes(self.output))
            self.unread = not try_store(self.run, store)

    @property
    def anything(self) -> bool:
        """Whether something was measured; telemetry alone is no measurement. True while the output is unread."""
        return self.unread or self._readings().filter(kind=ReadingKind.KNOWN).exists()

    @property
    def progress_note(self) -> str:
        if self.unread:
            return ""
        return "What it measured by then is kept." if self.anything else "It had measured nothing."

    def _readings(self) -> QuerySet[StoredReading]:
        readings = StoredReading.objects.filter(evidence__run=self.run)
        return readings.exclude(fact_id=TELEMETRY.id)

    def _refusal(self) -> str:
        """Why the program would not measure, with what to do about it; "" when it did measure."""
        lines = payload_lines.read(clean(bytes(self.output[:_MOST_REFUSAL])), "")
        measured = [row for _, row in lines.rows if "schema" not in row]
        return "" if measured else lines.error[:500]

    def _output_problem(self) -> str:
        """What the output holds instead of a measurement."""
        if not self.output:
            return "it printed nothing"
        detail = self._readings().exclude(detail="").values_list("detail", flat=True).first()
        return (detail or "its output holds no measurement")[:300]

    def verdict(self, ending: Ending) -> tuple[RunState, str]:
        """An exit code of 0 alone is no success: what ended so and measured nothing has failed."""
        if self.unread:
            return RunState.PARTLY, f"The program ended with exit code {ending.exit_code}."
        anything, stderr = self.anything, clean(ending.stderr).strip()[-500:]
        if ending.exit_code == 0 and anything:
            return RunState.SUCCEEDED, ""
        if ending.exit_code == _COPY_DAMAGED and not self.output:
            return RunState.FAILED, "The program did not arrive whole on the machine; run it again."
        if refused := self._refusal():
            return RunState.FAILED, f"Nothing was measured: {refused}."
        if ending.exit_code == 0:
            problem = f"The program ended with exit code 0, but nothing was measured: {self._output_problem()}."
            return RunState.FAILED, f"{problem} {stderr}".strip()
        problem = f"The benchmark ended with exit code {ending.exit_code}. {self.progress_note} {stderr}"
        return RunState.PARTLY if anything else RunState.FAILED, problem.strip()
