"""What runs a script at a target, and how the run ends.

Three forms: agents.ssh.SshAgent, agents.local.LocalAgent, agents.replay.ReplayAgent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

MOST_OUTPUT = 64 * 2**20  # bytes; far above what any collector or payload prints
MOST_STDERR = 64 * 2**10  # bytes kept


class Reason(StrEnum):
    """Why a run is over.

    finished: the script ended by itself. lost: the connection went first. flooded: it printed more
    than MOST_OUTPUT and was stopped.
    """

    FINISHED = "finished"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    FLOODED = "flooded"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended.

    exit_code None: there is none (killed, lost). leftover: processes of the run are still alive
    after the kill; None: it could not be checked. stderr: of the script's shell, not of its probes,
    cut at MOST_STDERR.
    """

    exit_code: int | None
    reason: Reason
    stderr: bytes = b""
    leftover: bool | None = False


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Watch:
    """How a run is watched. on_output gets stdout's bytes as they come. timeout_s: when the run is ended.
    cancelled is asked a few times a second. Both functions run in the event loop's thread and must not block."""

    on_output: Callable[[bytes], None]
    timeout_s: float
    cancelled: Callable[[], bool] = _never


class AgentError(Exception):
    """The target could not be reached. The text tells a person what to do."""


class Unreachable(AgentError):  # noqa: N818
    """No connection."""


class ScriptNotTaken(AgentError):  # noqa: N818
    """The target ended the session before it took the script."""

    def __init__(self) -> None:
        super().__init__(
            "The machine ended the session before it took the whole script, so there is no answer. Check that this "
            "user may run commands (its login shell, ForceCommand, limits), then run it again."
        )


class AuthenticationFailed(AgentError):  # noqa: N818
    """The target answers, and refuses us."""


class HostKeyUnknown(AgentError):  # noqa: N818
    """Nobody has accepted this target's key yet."""

    def __init__(self, host: str, fingerprint: str, line: str) -> None:
        super().__init__(
            f"The key of {host} has not been accepted yet. Compare its fingerprint {fingerprint} with "
            f"the one on the machine (ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub), then accept it."
        )
        self.fingerprint = fingerprint
        self.line = line


class HostKeyChanged(AgentError):  # noqa: N818
    """The target shows another key than the accepted one."""

    def __init__(self, host: str, expected: tuple[str, ...], actual: str, line: str) -> None:
        super().__init__(
            f"The key of {host} is not the accepted one: expected {' or '.join(expected)}, got {actual}. "
            f"Somebody may be in between. Ask who runs the machine whether it was reinstalled; "
            f"only then remove the old key and accept the new one."
        )
        self.expected = expected
        self.actual = actual
        self.line = line


class Agent(Protocol):
    """Runs scripts and payloads at one target.

    Raises AgentError when the target cannot be reached at all; once something ran, the answer is an Ending.
    """

    async def reach(self) -> None:
        """Returns when the machine answers. The connection stays open a while for the first run."""
        ...

    async def run(self, script: str, watch: Watch) -> Ending:
        """Runs a collector (or any sh script that knows --watch-stdin) in its own process group."""
        ...

    async def run_payload(self, program: bytes, argv: Sequence[str], *, interpreter: str, watch: Watch) -> Ending:
        """Runs a program from a private folder that is removed at the end.

        The program's standard input stays open and empty; when it closes, the caller is gone and the
        program has to stop. Exit code 3 from the wrapper: the copy was damaged.
        """
        ...
