"""Probes made for a test, and a run whose output is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agents.agent import Agent, Ending, Watch
from agents.collector import build_script
from agents.facts import View
from agents.probe import Command, Probe

NONCE = "0123456789abcdef"


def probe_of(name: str, *commands: str | Command, **more: Any) -> Probe:
    made = tuple(c if isinstance(c, Command) else Command(c) for c in commands)
    return Probe(
        f"agents.probes.guest.{name}",
        title=more.pop("title", f"Test {name}"),
        commands=made,
        supplies=(),
        parse=lambda output: (),
        **more,
    )


def script_of(*probes: Probe, **more: Any) -> str:
    return build_script(probes, role=View.GUEST, nonce=NONCE, **more)


def run(
    agent: Agent,
    script: str,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    timeout_s: float = 30.0,
    on_output: Callable[[bytes], None] | None = None,
) -> tuple[Ending, bytes]:
    heard = bytearray()

    def hear(chunk: bytes) -> None:
        heard.extend(chunk)
        if on_output:
            on_output(chunk)

    ending = asyncio.run(agent.run(script, Watch(hear, timeout_s, cancelled)))
    return ending, bytes(heard)


def run_payload(
    agent: Agent,
    program: str,
    argv: Sequence[str] = (),
    *,
    interpreter: str = "python3",
    cancelled: Callable[[], bool] = lambda: False,
    timeout_s: float = 30.0,
) -> tuple[Ending, bytes]:
    heard = bytearray()
    ending = asyncio.run(
        agent.run_payload(
            program.encode(), argv, interpreter=interpreter, watch=Watch(heard.extend, timeout_s, cancelled)
        )
    )
    return ending, bytes(heard)
