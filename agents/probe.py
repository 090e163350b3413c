"""Defines a probe: one read-only question with its commands, its parser and its signature.

A probe file (agents/probes/<role>/<name>.py) holds a docstring, one module-level `probe = Probe(…)`
and the functions it names; the package walk in agents/probes finds it. Its id is "<role>.<name>".
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.facts.fact import Fact, Reading, View

Readings = tuple[Reading[Any], ...]

# Texts of coreutils, util-linux dmesg, sudo and lspci under LC_ALL=C.
_REFUSED = re.compile(
    r"[Pp]ermission denied|[Oo]peration not permitted|password is required|<access denied>|"
    r"not in the sudoers|must be root|no new privileges"
)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one probe's command, decoded (UTF-8, invalid bytes replaced), without ANSI and CR.

    alternative: index of the command that answered; -1 when every alternative was missing or when a
    person pasted the text. exit_code None: unknown (a paste). truncated: cut at the output cap, or
    the transfer ended in it. timed_out: the collector's own limit stopped it.
    """

    stdout: str
    stderr: str = ""
    exit_code: int | None = 0
    alternative: int = 0
    truncated: bool = False
    timed_out: bool = False

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def tool_missing(self) -> bool:
        return self.exit_code == 127

    @property
    def refused(self) -> bool:
        """Whether the answer was denied for lack of rights: a reading `not_run`, never `absent`."""
        return bool(_REFUSED.search(f"{self.stderr[-4096:]}\n{self.stdout[-4096:]}"))


@dataclass(frozen=True, slots=True)
class Functions:
    """sh functions that several commands call. A script defines them once, in a variable of this name."""

    name: str
    sh: str


@dataclass(frozen=True, slots=True)
class Command:
    """One way to ask. `sh` is a constant POSIX sh snippet without interpolation.

    needs: tools that must be on PATH for this alternative to be tried; none means always.
    root: asks for `sudo -n` when not root.
    calls: functions that stand before the snippet when it runs.
    """

    sh: str
    needs: tuple[str, ...] = ()
    root: bool = False
    calls: Functions | None = None

    @property
    def whole(self) -> str:
        """The text that runs: the functions, then the snippet."""
        return f"{self.calls.sh}\n{self.sh}" if self.calls else self.sh


@dataclass(frozen=True, slots=True)
class Signature:
    """How to recognise pasted text that answers this probe.

    typed: regular expression for the command line as a person types it after a prompt.
    starts: regular expressions, one of which matches a line that opens such output.
    belongs: regular expression for lines that may continue it; None: everything up to the next part.
    score: how sure a match of `starts` alone is (0…1); a typed command makes it sure.
    above: regular expression for a line that belongs only right above the first one, as a section's name, which
        alone could be anything.
    any_machine: the tool prints the same on every machine (lspci, dmesg), so output of a machine with another role
        does not answer this probe.
    with_command: the parser also reads the typed command (which VM, which file).
    between: ids of readers that also read lines inside this output.
    """

    typed: str | None = None
    starts: tuple[str, ...] = ()
    belongs: str | None = None
    score: float = 0.9
    above: str | None = None
    any_machine: bool = False
    between: tuple[str, ...] = ()
    with_command: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """One read-only question.

    supplies: the facts `parse` may return; every one gets a reading from each parse.
    parse: pure; Output in, one Reading per fact out. It raises nothing on any text.
    timeout_s and cap_kib bound the command on the target.
    slow: run beside the others.
    root_adds: what the output lacks without root, in words for the preview.
    left_out: what the same source also holds and the target removes before it prints.
    on_demand: runs only when a person names it.
    for_runs: a benchmark needs its answer to start; only an agent's own answer counts, so the script for a person
        leaves this probe out.
    """

    module: str
    title: str
    commands: tuple[Command, ...]
    supplies: tuple[Fact[Any], ...]
    parse: Callable[[Output], Readings]
    signature: Signature = Signature()
    timeout_s: int = 10
    cap_kib: int = 512
    slow: bool = False
    root_adds: str = ""
    left_out: str = ""
    on_demand: bool = False
    for_runs: bool = False

    @property
    def id(self) -> str:
        """ "guest.topo_p2p_read" for agents.probes.guest.topo_p2p_read."""
        role, name = self.module.rsplit(".", 2)[-2:]
        return f"{role}.{name}"

    @property
    def role(self) -> View:
        return View(self.id.partition(".")[0])
