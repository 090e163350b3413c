"""Runs scripts on this machine, each in its own session."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass

from agents.agent import Ending, Reason, ScriptNotTaken, Unreachable, Watch
from agents.supervision import SWEEP, new_mark, read_sweep, supervise, sweep_script, whole_lines, wrap_payload

_CHUNK = 65536
_SWEEP_S = 15.0


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """An agents.agent.Agent for the machine this runs on."""

    async def reach(self) -> None:
        pass

    async def run(self, script: str, watch: Watch, *, sweep: str = SWEEP) -> Ending:
        mark = new_mark()
        process = await _start_shell(mark, "--watch-stdin")
        try:
            await _send_script(process, script)
            reason, stderr = await supervise(_LocalChannel(process), watch)
        except BaseException:
            await _sweep_run(mark, sweep)
            raise
        finally:
            if process.stdin:
                process.stdin.close()
        leftover = False if reason is Reason.FINISHED else await _sweep_run(mark, sweep)
        code = process.returncode if reason is Reason.FINISHED else None
        return Ending(code, reason, stderr, leftover)

    async def run_payload(self, program: bytes, argv: Sequence[str], *, interpreter: str, watch: Watch) -> Ending:
        script = wrap_payload(program, argv, interpreter=interpreter, timeout_s=watch.timeout_s)
        return await self.run(script, watch, sweep=sweep_script(interpreter))


async def _start_shell(mark: str, *arguments: str) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            "sh",
            "-s",
            "--",
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**_environment(), "PEERPATH_RUN": mark},
            start_new_session=True,
        )
    except OSError as error:
        raise Unreachable(f"No shell could be started here: {error.strerror}.") from error


def _environment() -> dict[str, str]:
    """The environment without our own settings: a script must not see the secret key or the database."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PEERPATH_")}


async def _send_script(process: Process, script: str) -> None:
    assert process.stdin
    process.stdin.write(whole_lines(script))
    try:
        await process.stdin.drain()
    except ConnectionError as error:
        raise ScriptNotTaken from error


async def _sweep_run(mark: str, sweep: str) -> bool | None:
    """Ends the processes left by a run. Returns whether some could not be ended."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-s", "--", mark, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    try:
        stdout, _ = await asyncio.wait_for(process.communicate(sweep.encode()), _SWEEP_S)
    except TimeoutError:
        process.kill()
        return None
    return read_sweep(stdout, mark, sweep)


@dataclass(frozen=True, slots=True)
class _LocalChannel:
    process: Process

    async def read(self) -> bytes:
        assert self.process.stdout
        return await self.process.stdout.read(_CHUNK)

    async def read_error(self) -> bytes:
        assert self.process.stderr
        return await self.process.stderr.read(_CHUNK)

    def exit_code(self) -> int | None:
        return self.process.returncode

    async def closed(self) -> None:
        await self.process.wait()
