"""Where a command gets outputs from: ssh://, local:, files and folders, a sample, standard input."""

import secrets
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.collector import build_script
from agents.facts import View
from agents.probes import probes_for
from agents.samples import load
from webapp.runs.cli_target import Keys, agent_of, collect

# Larger files are refused rather than read half.
LARGEST_BYTES = 512 * 1024 * 1024


class SourceError(Exception):
    """A source that cannot be used; the message says what to do. usage: the words are wrong."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(frozen=True, slots=True)
class SourceText:
    """One raw output. name: path, "-" or probe id, for people. tables: workload tables it carries."""

    name: str
    raw: bytes = b""
    epoch: int = 0
    tables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Access:
    """How ssh:// sources are reached."""

    role: View = View.GUEST
    keys: Keys = field(default_factory=Keys)


def gather(sources: Sequence[str], access: Access) -> Iterator[SourceText]:
    """The outputs of every source, in order. Raises SourceError, or an agents.agent error."""
    for source in sources:
        yield from _one(source, access)


def _one(source: str, access: Access) -> Iterator[SourceText]:
    if source == "-":
        yield SourceText("-", sys.stdin.buffer.read())
    elif source.startswith("sample:"):
        yield from _sample(source.removeprefix("sample:"))
    elif source.startswith("ssh://") or source == "local:":
        yield SourceText(source, _collect(source, access))
    elif "://" in source:
        raise SourceError(f"{source}: ssh://user@host:port, local:, sample:, a path or -", usage=True)
    else:
        yield from _files(Path(source))


def _sample(name: str) -> Iterator[SourceText]:
    try:
        outputs = load(name)
    except ValueError as error:
        raise SourceError(str(error), usage=True) from error
    for output in outputs:
        if output.is_workload:
            yield SourceText(output.name, tables=tomllib.loads(output.text), epoch=output.epoch)
        else:
            yield SourceText(output.name, output.text.encode(), output.epoch)


def _files(path: Path) -> Iterator[SourceText]:
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        if not files:
            raise SourceError(f"{path} holds no files")
    elif path.is_file():
        if path.suffix == ".toml":
            raise SourceError(f"{path} is no output; give it as --workload {path}", usage=True)
        files = [path]
    else:
        raise SourceError(f"{path}: no such file or folder", usage=True)
    for file in files:
        try:
            if file.stat().st_size > LARGEST_BYTES:
                raise SourceError(f"{file} is larger than 512 MiB; give the part that matters")
            yield SourceText(str(file), file.read_bytes())
        except PermissionError as error:
            raise SourceError(f"{file} may not be read by you") from error


def _collect(source: str, access: Access) -> bytes:
    """Runs the collector there and returns what it printed, as far as it came."""
    try:
        agent = agent_of(source, access.keys)
    except ValueError as error:
        raise SourceError(str(error), usage=True) from error
    probes = probes_for(access.role)
    return collect(agent, build_script(probes, role=access.role, nonce=secrets.token_hex(8)))
