"""The output of every payload: a header with its schema, one JSON object a line, a last line {"end": true}.

A note informs the reader; a note with "lost" names missing rows and the reason.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.parsing.nonblank_lines import nonblank_lines


@dataclass(slots=True)
class PayloadLines:
    """rows: (1-based line, object) of the measurements. error: why the payload refused, and how to fix it. ended: it
    reached its last line. stopped: why its watchdog ended it. lost: what could not be measured, and why. looks:
    (1-based line, object) of the telemetry."""

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
    payload = PayloadLines()
    for number, line in nonblank_lines(text):
        fields = _object(line)
        if isinstance(fields.get("environment"), dict) and fields.get("schema") == schema:
            payload.environment.update({str(k): text_of(v) for k, v in fields["environment"].items()})
        elif "error" in fields:
            words = (text_of(fields["error"]), text_of(fields.get("fix", "")))
            payload.error = "; ".join(filter(None, words))
        elif "note" in fields:
            (payload.lost if fields.get("lost") is True else payload.notes).append(text_of(fields["note"]))
        elif "telemetry" in fields or (isinstance(fields.get("gpus"), list) and "at_s" in fields):
            payload.looks.append((number, fields))
        elif fields and not {"stopped", "end"} & fields.keys():
            payload.rows.append((number, fields))
        payload.stopped = text_of(fields.get("stopped", payload.stopped))
        payload.ended = payload.ended or fields.get("end") is True
    return payload


def why_no_gpu(payload: PayloadLines) -> str:
    """Why the output says nothing about any GPU; "" when it does."""
    simulated = any(row.get("simulated") for _, row in payload.rows)
    if simulated or "--simulate-fault" in payload.environment.get("argv", ""):
        return "a fault was simulated"
    if payload.environment.get("device") == "cpu":
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


def whole_of(fields: Mapping[str, Any], name: str) -> int | None:
    """A count or size; None for anything else and below 0."""
    number = number_of(fields.get(name))
    return int(number) if number is not None and number >= 0 else None


def stats_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of agents.facts.bench.SampleStats, as agents/payloads/_shared/lines.py prints them."""
    unstable = fields.get("unstable")
    return {
        **{name: number_of(fields.get(name)) for name in ("p95_us", "p99_us", "ci_low_us", "ci_high_us", "cv")},
        **{name: whole_of(fields, name) for name in ("samples", "outliers")},
        "unstable": unstable if isinstance(unstable, bool) else None,
    }


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
