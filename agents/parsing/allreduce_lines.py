"""JSON lines of the all-reduce payload (schema peerpath.allreduce/1): a header, rows, a line an arm, an end.

An arm is one run of fresh processes: "no_p2p" (the control), "default", and "p2p_forced" where NCCL took no P2P by
itself. NCCL's log decides whether P2P was on, not the settings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import AllReduceResult, AllReduceRow, Timing
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, stats_of, text_of

SCHEMA = "peerpath.allreduce/1"
CONTROL = "no_p2p"
_ARMS = (CONTROL, "default", "p2p_forced")


@dataclass(frozen=True, slots=True)
class Arm:
    """outcome: right, wrong, hang, failed or unusable; "" when the arm was cut. lines: the lines of the result."""

    name: str
    result: AllReduceResult
    outcome: str
    why: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllReduceLines:
    """payload: the frame around the rows. why_no_gpu: why the rows say nothing about GPUs, "" if they do. verdict and
    why: the payload's own, over all arms."""

    arms: tuple[Arm, ...]
    payload: PayloadLines
    why_no_gpu: str = ""
    verdict: str = ""
    why: str = ""


def parse(text: str) -> AllReduceLines:
    payload = payload_lines.read(text, SCHEMA)
    verdict, why = "", ""
    for _, row in payload.rows:
        if "verdict" in row:
            verdict, why = text_of(row["verdict"]), text_of(row.get("why", ""))
    return AllReduceLines(tuple(_arms(payload)), payload, payload_lines.why_no_gpu(payload), verdict, why)


def _arms(payload: PayloadLines) -> Iterator[Arm]:
    for name in _ARMS:
        own = [(line, row) for line, row in payload.rows if row.get("arm") == name]
        if not own:
            continue
        rows = tuple(parsed_row for line, row in own for parsed_row in _parse_row(row, line))
        ending = next(((line, row) for line, row in own if "outcome" in row), (0, {}))
        yield _arm(name, payload.environment, rows, ending)


def _arm(
    name: str, environment: Mapping[str, str], rows: tuple[AllReduceRow, ...], ending: tuple[int, Mapping[str, Any]]
) -> Arm:
    line, end = ending
    settings = {key: text_of(end[key]) for key in ("outcome", "transport", "nccl", "settings") if key in end}
    if isinstance(channels := end.get("channels"), dict):  # counted lines of NCCL's log, over all ranks
        settings["connections"] = ", ".join(f"{via} {text_of(n)}" for via, n in list(channels.items())[:8])
    here = {key: value for key, value in {**environment, "arm": name, **settings}.items() if value}
    p2p = _p2p(name, settings.get("transport", ""), settings.get("outcome", ""))
    result = AllReduceResult(rows, p2p, Timing.DEVICE, here)
    lines = tuple(row.line for row in rows) + ((line,) if line else ())
    return Arm(name, result, settings.get("outcome", ""), text_of(end.get("why", "")), lines)


def _p2p(arm: str, transport: str, outcome: str) -> bool | None:
    """Whether P2P was on, by the log. Without it: off in the control arm, on where the arm hung."""
    if transport.startswith("mixed"):
        return None
    if transport:
        return transport.startswith("P2P")
    if arm == CONTROL:
        return False
    return True if outcome == "hang" else None


def _parse_row(row: Mapping[str, Any], line: int) -> list[AllReduceRow]:
    """The row, or nothing when a required figure is missing."""
    size, time_us, ranks = (number_of(row.get(k)) for k in ("size_bytes", "time_us", "ranks"))
    if not size or not time_us or not ranks or min(size, time_us, ranks) <= 0:
        return []
    wrong = number_of(row.get("wrong"))
    method, timing = text_of(row.get("method", "")), row.get("timing")
    return [
        AllReduceRow(
            int(size),
            time_us,
            int(ranks),
            in_place=row.get("in_place") is True,
            wrong=None if wrong is None else int(wrong),
            graph=method == "graph",
            timing=Timing(timing) if timing in set(Timing) else None,
            method=method,
            **stats_of(row),
            line=line,
        )
    ]
