"""Plays back a recorded run, for demonstrations and for tests of the code behind an agent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agents.agent import Ending, Reason, Watch


@dataclass(frozen=True, slots=True)
class ReplayAgent:
    """An agents.agent.Agent that answers every script and payload with the same recorded bytes."""

    recording: bytes
    chunk_bytes: int = 4096
    delay_s: float = 0.0
    exit_code: int = 0

    async def reach(self) -> None:
        pass

    async def run(self, script: str, watch: Watch) -> Ending:
        return await self._play_recording(watch)

    async def run_payload(self, program: bytes, argv: Sequence[str], *, interpreter: str, watch: Watch) -> Ending:
        return await self._play_recording(watch)

    async def _play_recording(self, watch: Watch) -> Ending:
        clock = asyncio.get_running_loop().time
        deadline = clock() + watch.timeout_s
        for start in range(0, len(self.recording), self.chunk_bytes):
            if watch.cancelled():
                return Ending(None, Reason.CANCELLED)
            if clock() > deadline:
                return Ending(None, Reason.TIMED_OUT)
            watch.on_output(self.recording[start : start + self.chunk_bytes])
            await asyncio.sleep(self.delay_s)
        return Ending(self.exit_code, Reason.FINISHED)
