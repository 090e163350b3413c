"""A run of probes: sends the collector, reads its frames as they arrive, and judges the result."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from agents.agent import Agent, Ending, Watch
from agents.collector import build_script, run_limit_s, script_sha256
from agents.facts import View
from agents.framing import Event, Frame, FrameReader, Header, clean
from agents.probe import Probe
from agents.probes import all_probes
from webapp.records import intake
from webapp.records.models import Run, RunState
from webapp.runs import lifecycle
from worker.agent_loop import Work
from worker.database_retry import with_retry
from worker.recovery import try_store

_NO_PROCESS = 2**31  # a number that only a machine which lies can name


@dataclass(slots=True)
class ProbeJob:
    run: Run
    claim: lifecycle.Claim
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    reader: FrameReader = field(init=False)
    answered: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    unread: bool = False  # the storage took nothing; not asked again, the rest is recovered with it

    def __post_init__(self) -> None:
        self.reader = FrameReader(self.nonce)

    @property
    def script(self) -> str:
        role = View(self.run.target.role)
        return build_script(self._probes, role=role, nonce=self.nonce, arguments=self.run.arguments)

    @property
    def script_sha256(self) -> str:
        return script_sha256(self.script)

    @property
    def _probes(self) -> list[Probe]:
        return [all_probes()[name] for name in self.run.names]

    def work(self, agent: Agent) -> Work:
        script = self.script
        timeout_s = run_limit_s(self._probes)
        return lambda on_output, cancelled: agent.run(script, Watch(on_output, timeout_s, cancelled))

    def take(self, piece: bytes) -> None:
        """Stores the answers that this piece completes as evidence."""
        self._keep(self.reader.feed(piece))

    def close(self) -> None:
        """Stores an answer that was cut off, as far as it arrived."""
        self._keep(self.reader.close())

    def _keep(self, events: Iterable[Event]) -> None:
        frames = []
        for event in events:
            if isinstance(event, Header):
                self._note_group(event.process_group)
            elif isinstance(event, Frame) and event.probe_id in self.run.names:
                frames.append(event)
        if frames and not self.unread:
            self.unread = not try_store(self.run, partial(intake.take_frames, self.run, frames))
        for frame in frames:
            self.answered.append(frame.probe_id)
            if frame.output.truncated or frame.output.timed_out:
                self.cut.append(frame.probe_id)

    def _note_group(self, group: int | None) -> None:
        if group is not None and abs(group) < _NO_PROCESS:
            with_retry(lambda: lifecycle.note_process_group(self.claim, group))

    @property
    def anything(self) -> bool:
        return bool(self.answered)

    @property
    def progress_note(self) -> str:
        """A sentence on how many answers arrived, for a run that did not end by itself."""
        return f"{len(self.answered)} of {len(self.run.names)} answers had arrived and are kept."

    def verdict(self, ending: Ending) -> tuple[RunState, str]:
        unanswered = [name for name in self.run.names if name not in self.answered]
        if not self.answered:
            return RunState.FAILED, f"The machine did not run the script. {_shell_problem(ending)}"
        if unanswered:
            return RunState.PARTLY, f"Without an answer: {', '.join(unanswered)}."
        if self.cut:
            return RunState.PARTLY, f"Cut short by their limits: {', '.join(self.cut)}."
        return RunState.SUCCEEDED, ""


def _shell_problem(ending: Ending) -> str:
    stderr = clean(ending.stderr).strip()[:500]
    return f"It said: {stderr}" if stderr else f"Its shell ended with exit code {ending.exit_code}."
