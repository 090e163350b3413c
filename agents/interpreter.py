"""Which Python runs a payload: one on the machine, or one in a container that runs there.

As text: a path or name ("/opt/venv/bin/python", "python3"), or "docker:NAME:/usr/bin/python3", with podman in
docker's place. A container's name comes from the target, so only the characters that container runtimes allow are
accepted (moby, daemon/names: [a-zA-Z0-9][a-zA-Z0-9_.-]+).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CONTAINER = re.compile(
    r"(?P<engine>docker|podman):(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,127}):"
    r"(?P<path>/[\w./+-]{0,400}/python[0-9.]*)",
    re.ASCII,
)
_HERE = re.compile(r"/\S{0,400}/python[0-9.]*", re.ASCII)
_PYTHON = re.compile(r"(?P<python>\S{1,600}) (?P<version>\d[\w.+!-]{0,60}|\?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """path: within the machine or the container. engine, container: "" for a Python of the machine itself."""

    path: str
    engine: str = ""
    container: str = ""


def interpreter_of(text: str) -> Interpreter:
    """Raises ValueError for a container that has no safe form."""
    if not text.startswith(("docker:", "podman:")):
        return Interpreter(text)
    match = _CONTAINER.fullmatch(text)
    if not match:
        raise ValueError(
            "A Python in a container is written docker:NAME:/path/to/python3 (or podman:…), with the "
            "container's name as `docker ps` prints it."
        )
    return Interpreter(match["path"], match["engine"], match["name"])


def chosen_of(values: Iterable[str]) -> str:
    """The best of the interpreters that probes report ("PYTHON VERSION", newest last); "" when there is none.

    A Python on the machine is preferred to one in a container, and both to a torch without CUDA.
    """
    pythons = [match for value in values if (match := _PYTHON.fullmatch(value)) and _is_interpreter(match["python"])]
    best = min(reversed(pythons), key=_python_rank, default=None)
    return best["python"] if best else ""


def _python_rank(python: re.Match[str]) -> tuple[bool, bool]:
    return python["version"].endswith("+cpu"), ":" in python["python"]


def _is_interpreter(text: str) -> bool:
    return bool(_HERE.fullmatch(text) or _CONTAINER.fullmatch(text))
