"""Builds one POSIX sh script that runs a list of probes.

The same script runs over SSH, in a local shell, or in the hands of a person who pastes its output
back; agents/framing.py reads all three. The fixed part is collector.sh beside this file.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.facts import View
from agents.probe import Command, Probe

SCHEMA = "peerpath.collector/1"
GRACE_S = 60  # connecting, starting the shell, the transfer
_TEMPLATE = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8")
_WIDTH = 118  # with a continuation's backslash, 120
_HASH_LINE = re.compile(r"(?m)^script_sha256=.*$")


@dataclass(frozen=True, slots=True)
class PreviewLine:
    """One command the script may run. root: with `sudo -n` where that is allowed, else without.

    needs: tools that this alternative requires. root_adds: what the command does not see without root.
    """

    probe_id: str
    title: str
    command: str
    needs: tuple[str, ...]
    timeout_s: int
    root: bool
    root_adds: str


def preview(probes: Sequence[Probe]) -> tuple[PreviewLine, ...]:
    """Every command of every alternative, in the order the probes are given."""
    return tuple(
        PreviewLine(p.id, p.title, c.whole, c.needs, p.timeout_s, c.root, p.root_adds)
        for p in probes
        for c in p.commands
    )


def limits_s(probes: Iterable[Probe]) -> int:
    """The sum of the probes' time limits in seconds: the most a script of them takes on its machine."""
    return sum(probe.timeout_s for probe in probes)


def run_limit_s(probes: Iterable[Probe]) -> int:
    """The seconds after which we end a run of these probes; the output up to then is stored."""
    return limits_s(probes) + GRACE_S


def build_script(probes: Sequence[Probe], *, role: View, nonce: str, arguments: Mapping[str, str] | None = None) -> str:
    """The collector for these probes, ready to run.

    nonce: 8–64 letters and digits, in every line that the script itself prints, so that its answer differs from any
    other. arguments: {"VMID": "100"} becomes $PEERPATH_VMID for the commands. Raises ValueError for a nonce, name or
    value that has no safe form, and for a repeated probe.
    """
    if not re.fullmatch(r"[0-9A-Za-z]{8,64}", nonce):
        raise ValueError("A nonce is 8 to 64 letters and digits.")
    ids = [probe.id for probe in probes]
    if len(ids) != len(set(ids)):
        raise ValueError("A probe is in the list twice.")
    variables = {f"PEERPATH_{_shell_name(n)}": value for n, value in sorted((arguments or {}).items())}
    values = {
        "sha256": "",
        "nonce": nonce,
        "role": role.value,
        "asks_root": "yes" if any(c.root for p in probes for c in p.commands) else "no",
        "shared": "".join(f' {name}="${name}"' for name in variables),
        "functions": _functions(probes),
        "probes": "\n".join(_probe_call(probe) for probe in probes) or "  :",
        "arguments": _assignments(variables),
    }
    script = re.sub(r"@([a-z0-9_]+)@", lambda hole: values[hole[1]], _TEMPLATE)
    return _HASH_LINE.sub(f"script_sha256={script_sha256(script)}", script, count=1)


def script_sha256(script: str) -> str:
    """The hash in a collector's header: SHA-256 of the script with that hash left empty."""
    blank = _HASH_LINE.sub("script_sha256=", script, count=1)
    return hashlib.sha256(blank.encode()).hexdigest()


def quote(value: str) -> str:
    """One word of sh that expands to exactly this text. Raises ValueError where there is none."""
    if "\0" in value:
        raise ValueError("A NUL cannot stand in a shell word.")
    value.encode()
    return "'" + value.replace("'", "'\\''") + "'"


def _shell_name(name: str) -> str:
    if not re.fullmatch(r"[A-Z_]+", name):
        raise ValueError(f"{name!r} is not a name for an argument.")
    return name


def _assignments(variables: Mapping[str, str]) -> str:
    if any("\n" in value for value in variables.values()):
        raise ValueError("The value of an argument is one line.")
    settings = [f"{name}={quote(value)}" for name, value in variables.items()]
    return f"  export {' '.join(['PATH', 'LC_ALL', 'TERM', *settings])}"


def _probe_call(probe: Probe) -> str:
    pace = "slow" if probe.slow else "quick"
    head = f"  probe {probe.id} {pace} {probe.timeout_s} {probe.cap_kib} {quote(probe.title)}"
    first, *others = (_alternative(command) for command in probe.commands)
    apart = len(f"{head} {first}".partition("\n")[0]) > _WIDTH
    head += f" \\\n    {first}" if apart else f" {first}"
    lines = [head]
    for other in others:
        apart = len(lines[-1].rpartition("\n")[2]) + len(other.partition("\n")[0]) > _WIDTH
        lines = [*lines, f"    {other}"] if apart else [*lines[:-1], f"{lines[-1]} {other}"]
    return " \\\n".join(lines)


def _alternative(command: Command) -> str:
    who = "root" if command.root else "user"
    functions = f'"${command.calls.name}"' if command.calls else ""
    return f"{quote(' '.join(command.needs))} {who} {functions}{quote(command.sh)}"


def _functions(probes: Sequence[Probe]) -> str:
    """The sh functions, each once, in a variable that the commands start with."""
    called = {c.calls.name: c.calls.sh + "\n" for probe in probes for c in probe.commands if c.calls}
    texts = [f"{name}={quote(text)}" for name, text in sorted(called.items())]
    return "\n".join(["", "# What several commands begin with.", *texts]) if texts else ""
