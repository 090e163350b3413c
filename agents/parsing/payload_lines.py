"""What every payload prints: a header with its schema, one JSON object a line, a last line {"end": true}.

A note says what a reader should know; one with "lost" says which rows are not there, and why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.parsing.said_lines import said_lines


@dataclass(slots=True)
class PayloadLines:
    """rows: (1-based line, object) of what is no frame. error: why it refused, with what to do about it.
    ended: it reached its last line. stopped: its watchdog ended it, and why. lost: what could not be
    measured, and why. looks: (1-based line, object) of the telemetry among the rows."""

    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    looks: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    error: str = ""
    stopped: str = ""
    ended: bool = False

    def why_cut(self, *, timed_out: bool) -> str:
        if self.stopped or self.error:
            return self.stopped or self.error
        return "it ran out of time" if timed_out else "the output stops before it"


def read(text: str, schema: str) -> PayloadLines:
    found = PayloadLines()
    for number, line in said_lines(text):
        said = _object(line)
        if isinstance(said.get("environment"), dict) and said.get("schema") == schema:
            found.environment.update({str(k): text_of(v) for k, v in said["environment"].items()})
        elif "error" in said:
            words = (text_of(said["error"]), text_of(said.get("fix", "")))
            found.error = "; ".join(filter(None, words))
        elif "note" in said:
            (found.lost if said.get("lost") is True else found.notes).append(text_of(said["note"]))
        elif "telemetry" in said or (isinstance(said.get("gpus"), list) and "at_s" in said):
            found.looks.append((number, said))
        elif said and not {"stopped", "end"} & said.keys():
            found.rows.append((number, said))
        found.stopped = text_of(said.get("stopped", found.stopped))
        found.ended = found.ended or said.get("end") is True
    return found


def played(said: PayloadLines) -> str:
    """Why what it printed says nothing of any GPU; "" when it does."""
    simulated = any(row.get("simulated") for _, row in said.rows)
    if simulated or "--simulate-fault" in said.environment.get("argv", ""):
        return "a fault was simulated"
    if said.environment.get("device") == "cpu":
        return "gloo in the CPU's memory, to try the program"
    return ""


def number_of(value: Any) -> float | None:
    """A finite number; never a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole_of(said: Mapping[str, Any], name: str) -> int | None:
    """A count or size; None for what is none or below 0."""
    number = number_of(said.get(name))
    return int(number) if number is not None and number >= 0 else None


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _object(line: str) -> dict[str, Any]:
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return {}
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
