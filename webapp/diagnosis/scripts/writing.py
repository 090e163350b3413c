"""A plan as sh: values quoted once at the top, then constant files, and main on the last line."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from agents.facts import View
from webapp.diagnosis.case import Restart
from webapp.diagnosis.scripts.model import Change, Do, PhaseScript, Plan, ScriptError
from webapp.diagnosis.scripts.values import assignments

_SH = Path(__file__).parent / "sh"
_HEAD = """\
#!/bin/sh
# {title}.
#   sh FILE        {alone}
{yes}# Everything is below, in functions; the last line starts it. Functions that are called by name, and
# values that only some phases use, look unused to shellcheck (SC2034, SC2317); SC2015 and SC2016: meant.
# shellcheck disable=SC2015,SC2016,SC2034,SC2317"""
_YES = "#   sh FILE --yes  does it; without, it is a dry run that shows what would change\n"
_ALONE = {
    Do.APPLY: "looks, shows what would change, and changes nothing",
    Do.ROLLBACK: "looks, shows what would change back, and changes nothing",
    Do.VERIFY: "looks whether it holds; it changes nothing",
}
_KEY = re.compile(r"[a-z]+[0-9]{0,3}")
# What the constant files ask for and not every phase sets.
_EMPTY = {"cliques": "", "nics": ""}


def write(plan: Plan, phase: str, do: Do, role: View, vmid: int | None, parts: Sequence[str]) -> PhaseScript:
    """parts: names of files in sh/, in order. Raises ScriptError for a value that may not be written."""
    machine = f"VM {vmid}" if vmid is not None else f"the {role}"
    title = f"Peerpath {phase} {do}, {machine}: {plan.title}"
    values = {"title": title, "phase": phase, **_EMPTY, **plan.values, **_numbered_variables(plan)}
    pieces = [
        _HEAD.format(title=title, alone=_ALONE[do], yes="" if do is Do.VERIFY else _YES),
        "# Values of the session, each checked against its type.\n" + assignments(values),
        *(_change_functions(plan.vm_changes) if plan.vm_changes else ()),
        *((_settings_text(plan.settings),) if "drop_flags" in plan.values else ()),
        *(_shell_part(name) for name in parts),
        f'{{ begin "$@"; {do}; exit; }}\n',
    ]
    script = PhaseScript(
        phase=phase,
        do=do,
        role=role,
        vmid=vmid,
        title=title,
        text="\n\n".join(pieces),
        reads=plan.reads,
        changes=() if do is Do.VERIFY else plan.effects,
        refusals=plan.refusals,
        left_out=plan.left_out,
        what_to_type=(),
        downtime=Restart.NONE if do is Do.VERIFY else plan.downtime,
        risk="None: it only looks." if do is Do.VERIFY else plan.risk,
        predicted_effect=plan.predicted_effect if do is Do.APPLY else None,
    )
    return _with_commands(script, plan)


def _numbered_variables(plan: Plan) -> dict[str, str]:
    variables: dict[str, str] = {}
    for number, change in enumerate(plan.vm_changes, 1):
        if _KEY.fullmatch(change.key) is None:
            raise ScriptError(f"{change.key!r} is not a line of a VM's configuration.")
        variables |= {f"was_{number}": change.was, f"new_{number}": change.new}
    return variables | {f"value_{n}": value for n, (_, value) in enumerate(plan.settings, 1)}


def _change_functions(changes: Sequence[Change]) -> tuple[str, str]:
    """`changes` names every line to the function it is given; `write_changes` sets them in one step."""
    lines = [f'  "$1" {c.key} "$was_{n}" "$new_{n}"' for n, c in enumerate(changes, 1)]
    words = [f'--{c.key} "$new_{n}"' for n, c in enumerate(changes, 1) if c.new]
    gone = [c.key for c in changes if not c.new]
    words += [f"--delete {','.join(gone)}"] if gone else []
    command = ' qm set "$vmid" ' + " \\\n    ".join(words) + " </dev/null"
    return (
        "changes() { # function that takes key, old and new value\n" + "\n".join(lines) + "\n}",
        "write_changes() {\n " + command + "\n}",
    )


def _settings_text(settings: Sequence[tuple[str, str]]) -> str:
    """Names every environment variable, and its value, to the function it is given."""
    lines = [f'  "$1" {name} "$value_{n}"' for n, (name, _) in enumerate(settings, 1)] or ["  :"]
    return "settings() { # function that takes name and value\n" + "\n".join(lines) + "\n}"


@cache
def _shell_part(name: str) -> str:
    return (_SH / f"{name}.sh").read_text(encoding="utf-8").strip()


def _with_commands(script: PhaseScript, plan: Plan) -> PhaseScript:
    """The dry run first; the script itself prints what follows."""
    run = f"sh {script.file_name} {plan.arguments}".strip()
    runs = [run] if script.do is Do.VERIFY else [run, f"{run} --yes"]
    hint = [f"# {plan.hint}"] if plan.hint else []
    return replace(script, what_to_type=(f"sha256sum {script.file_name}", *hint, *runs))
