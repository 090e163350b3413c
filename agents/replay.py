"""Plays back what a run once printed, for demonstrations and tests of what comes after an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.agent import Ending, Reason


@dataclass(frozen=True, slots=True)
class ReplayAgent:
    """An agents.agent.Agent that answers every script and payload with the same recorded bytes."""

    recording: bytes
    chunk_bytes: int = 4096
    delay_s: float = 0.0
    exit_code: int = 0

    async def reach(self) -> None:
        pass

    async def run(
        self, script: str, *, on_output: Callable[[bytes], None], cancelled: Callable[[], bool], timeout_s: float
    ) -> Ending:
        return await self._play(on_output, cancelled, timeout_s)

    async def run_payload(
        self,
        program: bytes,
        argv: Sequence[str],
        *,
        interpreter: str,
        on_output: Callable[[bytes], None],
        cancelled: Callable[[], bool],
        timeout_s: float,
    ) -> Ending:
        return await self._play(on_output, cancelled, timeout_s)

    async def _play(
        self, on_output: Callable[[bytes], None], cancelled: Callable[[], bool], timeout_s: float
    ) -> Ending:
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        for start in range(0, len(self.recording), self.chunk_bytes):
            if cancelled():
                return Ending(None, Reason.CANCELLED)
            if clock() > deadline:
                return Ending(None, Reason.TIMED_OUT)
            on_output(self.recording[start : start + self.chunk_bytes])
            await asyncio.sleep(self.delay_s)
        return Ending(self.exit_code, Reason.FINISHED)
