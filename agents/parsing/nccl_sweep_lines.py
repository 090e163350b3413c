"""JSON lines of the sweep over NCCL's settings (schema peerpath.nccl_sweep/1): header, plan, rows, tries.

A block is whole once its own line says so. Rows of a cut block are left out, because it lacks some arms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.facts.bench import SweepArm, SweepResult, SweepRow, Timing
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, text_of

SCHEMA = "peerpath.nccl_sweep/1"
BASELINE = "baseline"
_MOST = 10**6
_MOST_ARMS = 100
_LONGEST_US = 1e10
_VARIABLE = re.compile(r"NCCL_[A-Z0-9_]{1,60}")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:^+-]{1,80}")
_WORST_LAST = ("right", "unusable", "failed", "wrong", "hang")


@dataclass(frozen=True, slots=True)
class SweepLines:
    """result: None without a plan or a row of the baseline. why_no_gpu: why the rows say nothing about GPUs, "" if
    they do. unusable: why nothing can be compared. lines: the lines of the result."""

    payload: PayloadLines
    result: SweepResult | None = None
    why_no_gpu: str = ""
    unusable: str = ""
    lines: tuple[int, ...] = ()


def parse(text: str) -> SweepLines:
    payload = payload_lines.read(text, SCHEMA)
    plans = [(line, row["plan"]) for line, row in payload.rows if isinstance(row.get("plan"), dict)]
    verdicts = [row for _, row in payload.rows if row.get("verdict") == "unusable"]
    unusable = text_of(verdicts[-1].get("why", "")) if verdicts else ""
    why_no_gpu = payload_lines.why_no_gpu(payload)
    if not plans:
        return SweepLines(payload, None, why_no_gpu, unusable)
    line, plan = plans[0]
    result = _result(payload, plan)
    lines = (line, *(row.line for row in result.rows))
    measured = any(row.arm == BASELINE for row in result.rows)
    return SweepLines(payload, result if measured else None, why_no_gpu, unusable, lines)


def _result(payload: PayloadLines, plan: Mapping[str, Any]) -> SweepResult:
    whole = {_count(row.get("block")) for _, row in payload.rows if row.get("whole") is True} - {0}
    arms = _arms(plan.get("arms"))
    weights = _weights(plan)
    rows = tuple(
        row for row in _rows(payload) if row.block in whole and row.arm in arms and row.size_bytes in dict(weights)
    )
    ordered = sorted(arms, key=lambda name: name != BASELINE)
    seed = plan.get("seed")
    return SweepResult(
        tuple(_arm(payload, name, arms[name]) for name in ordered),
        rows,
        weights,
        len({row.block for row in rows}),
        _count(plan.get("ranks")),
        seed if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**63 else None,
        Timing.DEVICE,
        {**payload.environment, **({"nccl": text_of(plan["nccl"])} if plan.get("nccl") else {})},
    )


def _arms(named: Any) -> dict[str, dict[str, str]]:
    """Settings by arm. People paste them into a shell, so only NCCL's variables and plain values count."""
    by_name = {
        str(name): {str(key): text_of(value) for key, value in settings.items()}
        for name, settings in (named.items() if isinstance(named, dict) else ())
        if isinstance(settings, dict)
    }
    return {
        name: settings
        for name, settings in list(by_name.items())[:_MOST_ARMS]
        if all(_VARIABLE.fullmatch(key) and _PLAIN.fullmatch(v) for key, v in settings.items())
    }


def _weights(plan: Mapping[str, Any]) -> tuple[tuple[int, float], ...]:
    """Weights as shares of 1; empty when sizes and weights do not match."""
    sizes, weights = plan.get("sizes"), plan.get("weights")
    if not isinstance(sizes, list) or not isinstance(weights, list) or len(sizes) != len(weights):
        return ()
    by_size = {_count(size, 2**50): number_of(weight) for size, weight in zip(sizes, weights, strict=True)}
    valid = {size: weight for size, weight in by_size.items() if size and weight is not None and weight >= 0}
    total = sum(valid.values())
    if not 0 < total < 1e12:
        return ()
    return tuple(sorted((size, weight / total) for size, weight in valid.items()))


def _rows(payload: PayloadLines) -> Iterator[SweepRow]:
    """Device-timed rows, the first of each arm, block and size, since a log may be pasted twice."""
    seen = set()
    for line, row in payload.rows:
        time_us, block, size = (
            number_of(row.get("time_us")),
            _count(row.get("block")),
            _count(row.get("size_bytes"), 2**50),
        )
        key = (text_of(row.get("arm", "")), block, size)
        if not time_us or not 0 < time_us < _LONGEST_US or not block or not size or key in seen:
            continue
        if row.get("timing") != Timing.DEVICE:
            continue
        seen.add(key)
        unstable = row.get("unstable")
        yield SweepRow(*key, time_us, unstable if isinstance(unstable, bool) else None, line)


def _arm(payload: PayloadLines, name: str, settings: Mapping[str, str]) -> SweepArm:
    tries = [(line, row) for line, row in payload.rows if row.get("arm") == name and row.get("outcome") in _WORST_LAST]
    ends = [row for _, row in tries]
    worst = max(ends, key=lambda row: _WORST_LAST.index(row["outcome"]), default={})
    named = [(line, row) for line, row in tries if row.get("transport")]
    line, last = named[-1] if named else (0, {})
    return SweepArm(
        name,
        settings,
        text_of(worst.get("outcome", "")),
        text_of(worst.get("why", "")),
        text_of(last["transport"]) if last else "",
        line,
    )


def _count(value: Any, most: int = _MOST) -> int:
    """A whole number of at least 1, else 0."""
    number = number_of(value)
    return int(number) if number is not None and 1 <= number <= most else 0
