"""Run supervision: a mark on a run's processes, a reader of their output that stops them in time, and the
sweep that ends processes left behind.
"""

import asyncio
import base64
import hashlib
import math
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from agents.agent import MOST_OUTPUT, MOST_STDERR, Reason, Watch
from agents.collector import quote
from agents.interpreter import Interpreter, interpreter_of


def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


SWEEP, _PAYLOAD = _script("sweep.sh"), _script("payload.sh")
_CONTAINER, _CONTAINER_SWEEP = _script("container.sh"), _script("container_sweep.sh")
_TICK_S = 0.1  # how often `cancelled` is asked
_HELD_OPEN_S = 1.0  # how long output may stay open after the script's own end


class Channel(Protocol):
    """A process somewhere. read and read_error answer b"" at the end, and never raise for a lost
    connection. exit_code None: still running, or lost. closed returns when it is gone."""

    async def read(self) -> bytes: ...
    async def read_error(self) -> bytes: ...
    def exit_code(self) -> int | None: ...
    async def closed(self) -> None: ...


def new_mark() -> str:
    """The value of PEERPATH_RUN in the environment of a run's processes."""
    return secrets.token_hex(8)


def whole_lines(script: str) -> bytes:
    """The script as it is sent. Standard input stays open after it, so its last line needs a line end."""
    return (script if script.endswith("\n") else script + "\n").encode()


def wrap_payload(program: bytes, argv: Sequence[str], *, interpreter: str, timeout_s: float) -> str:
    """The sh script that carries a program to a target and runs it, inside a container if the interpreter is
    in one. Raises ValueError as interpreter_of does."""
    python = interpreter_of(interpreter)
    words = [quote(python.path), "./program", *(quote(word) for word in argv)]
    values = {
        "program": base64.encodebytes(program).decode("ascii").rstrip("\n"),
        "sha256": hashlib.sha256(program).hexdigest(),
        "seconds": str(math.ceil(timeout_s)),
        "command": " ".join(words),
    }
    script = re.sub(r"@(program|sha256|seconds|command)@", lambda hole: values[hole[1]], _PAYLOAD)
    return _fill_template(_CONTAINER, python, script) if python.engine else script


def sweep_script(interpreter: str = "") -> str:
    """The script that ends processes a payload left, in its container first if it ran in one."""
    python = interpreter_of(interpreter)
    return (_fill_template(_CONTAINER_SWEEP, python, SWEEP) if python.engine else "") + SWEEP


def _fill_template(template: str, python: Interpreter, script: str) -> str:
    values = {
        "engine": quote(python.engine),
        "container": quote(python.container),
        "script": base64.encodebytes(script.encode()).decode("ascii").rstrip("\n"),
    }
    return re.sub(r"@(engine|container|script)@", lambda hole: values[hole[1]], template)


def read_sweep(raw: bytes, mark: str, script: str) -> bool | None:
    """Whether the sweep left something alive; None when it did not report on every place it was for."""
    counts = re.findall(rf"(?m)^={mark}= left ([0-9]+)$", raw.decode("utf-8", "replace"))
    if any(int(count) for count in counts):
        return True
    return None if len(counts) < (1 if script == SWEEP else 2) else False


async def supervise(channel: Channel, watch: Watch) -> tuple[Reason, bytes]:
    """Reads the output until the process ends or must be ended: the reason, and stderr up to MOST_STDERR.

    Raises what `watch.on_output` raises.
    """
    stderr = bytearray()
    reading = asyncio.create_task(_read_output(channel, watch.on_output))
    tasks = [reading, asyncio.create_task(_read_stderr(channel, stderr)), asyncio.create_task(channel.closed())]
    try:
        reason = await _until_over(channel, tasks, reading, watch)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return reason, bytes(stderr)


async def _until_over(
    channel: Channel, tasks: list[asyncio.Task[None]], reading: asyncio.Task[None], watch: Watch
) -> Reason:
    clock = asyncio.get_running_loop().time
    deadline, give_up = clock() + watch.timeout_s, math.inf
    while running := [task for task in tasks if not task.done()]:
        await asyncio.wait(running, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and (error := reading.exception()):
            if isinstance(error, _FloodedError):
                return Reason.FLOODED
            raise error
        if channel.exit_code() is not None:
            give_up = min(give_up, clock() + _HELD_OPEN_S)
            if clock() > give_up:
                break
        elif watch.cancelled():
            return Reason.CANCELLED
        elif clock() > deadline:
            return Reason.TIMED_OUT
    return Reason.LOST if channel.exit_code() is None else Reason.FINISHED


class _FloodedError(Exception):
    pass


async def _read_output(channel: Channel, on_output: Callable[[bytes], None]) -> None:
    left = MOST_OUTPUT
    while chunk := await channel.read():
        left -= len(chunk)
        if left < 0:
            raise _FloodedError
        on_output(chunk)


async def _read_stderr(channel: Channel, stderr: bytearray) -> None:
    while chunk := await channel.read_error():
        stderr += chunk[: MOST_STDERR - len(stderr)]
