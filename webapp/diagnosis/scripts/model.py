"""A phase script and the plan that it is made from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agents.facts import View
from webapp.diagnosis.case import Restart
from webapp.diagnosis.claim import Range


class Do(StrEnum):
    APPLY = "apply"
    VERIFY = "verify"
    ROLLBACK = "rollback"


class ScriptError(ValueError):
    """No script can be made; the message says why, and what to do, in whole sentences.

    typed and page: what to do about it at a command line, and on the pages, where these differ.
    """

    def __init__(self, why: str, *, typed: str = "", page: str = "") -> None:
        super().__init__(f"{why} {typed}".strip())
        self.on_page = f"{why} {page}".strip()


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a VM's configuration. was or new "": the line is not there."""

    key: str
    was: str
    new: str

    @property
    def text(self) -> str:
        return f"{self.key}: {self.was or '(not set)'} → {self.new or '(not set)'}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one phase does to one machine, before it is written as sh.

    values: assignments at the top of the script. vm_changes: every line of the VM that the phase sets,
    also where it holds already. settings: environment variables. effects: what `--yes` changes, for
    people. left_out: sentences on what belongs to the phase and is not in the script. arguments: what
    the script is told beside --yes. hint: what the capital words in arguments stand for.
    """

    title: str
    values: Mapping[str, str]
    vm_changes: tuple[Change, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    effects: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    downtime: Restart = Restart.NONE
    risk: str = ""
    predicted_effect: Range | None = None
    arguments: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class PhaseScript:
    """One POSIX sh script, and what a person must know before running it.

    reads and changes: what it looks at, and what `--yes` would change, one sentence or line each.
    refusals: when it stops before changing anything. what_to_type: the commands in order, the dry run
    first. left_out: parts of the phase it does not do, and why. predicted_effect: factor range on
    throughput, None where there is no figure.
    """

    phase: str
    do: Do
    role: View
    vmid: int | None
    title: str
    text: str
    reads: tuple[str, ...]
    changes: tuple[str, ...]
    refusals: tuple[str, ...]
    left_out: tuple[str, ...]
    what_to_type: tuple[str, ...]
    downtime: Restart
    risk: str
    predicted_effect: Range | None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def file_name(self) -> str:
        vm = f"-vm{self.vmid}" if self.vmid is not None else ""
        return f"peerpath-{self.role}-{self.phase}-{self.do}{vm}.sh"
