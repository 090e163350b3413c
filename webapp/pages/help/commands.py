"""The command line, described by its own parsers."""

import argparse
from dataclasses import dataclass
from functools import cache

from django.core.management import get_commands, load_command_class

OURS = ("webapp.", "worker")
# Arguments that every command of Django has.
_COMMON = frozenset(
    {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color"} | {"force_color", "skip_checks"}
)


@dataclass(frozen=True, slots=True)
class Argument:
    """written: the typed form, "--role {guest,host}"."""

    written: str
    says: str


@dataclass(frozen=True, slots=True)
class Listed:
    """name: as typed after ./run."""

    name: str
    says: str
    usage: str
    arguments: tuple[Argument, ...]


@cache
def commands() -> tuple[Listed, ...]:
    """Sorted by name."""
    ours = sorted(n for n, app in get_commands().items() if str(app).startswith(OURS))
    return tuple(_listed_command(name) for name in ours)


def _listed_command(name: str) -> Listed:
    typed = name.replace("_", "-")
    parser = load_command_class(get_commands()[name], name).create_parser("./run", name)
    parser.prog = f"./run {typed}"
    return _listed_parser(typed, parser, parser.description or "")


def _listed_parser(name: str, parser: argparse.ArgumentParser, says: str) -> Listed:
    own = [action for action in parser._actions if action.dest not in _COMMON]
    arguments = tuple(Argument(_option_text(action), _help_text(action)) for action in own)
    usage = " ".join([parser.prog, *(_in_usage(action) for action in own)])
    return Listed(name, says, usage, arguments)


def _option_text(action: argparse.Action) -> str:
    name = action.option_strings[-1] if action.option_strings else ""
    return f"{name} {_value_name(action)}".strip()


def _value_name(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _in_usage(action: argparse.Action) -> str:
    text = _option_text(action)
    text += {"*": "…", "+": " …"}.get(str(action.nargs), "")
    return text if action.required else f"[{text}]"


def _help_text(action: argparse.Action) -> str:
    text = action.help or ""
    plain = isinstance(action.default, str | int) and not isinstance(action.default, bool)
    return f"{text} (default {action.default})".strip() if plain and action.default else text
