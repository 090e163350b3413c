"""A trace too large to be held as objects gives what a small one gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.facts import ReadingKind
from agents.raw_reading import read_raw

pytestmark = pytest.mark.thorough
STEP = (("rmsnorm", 5), ("flash_fwd", 20), ("ncclDevKernel_AllReduce", 30), ("argmax", 3))


def _trace(padding: int) -> str:
    """padding: bytes of what the CPU did, beside each kernel."""
    at, events = 0.0, []
    for name, took in (*STEP[:3] * 6, STEP[3]) * 20:
        about = {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": took}
        events.append({**about, "pid": 0, "tid": 7, "args": {"device": 0}})
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": 1}
        events.append({**op, "args": {"Call stack": "],{" * (padding // 3)}})
        at += took + 2
    return json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": events}, indent=1)


def _read(text: str) -> Any:
    (item,) = read_raw(text.encode(), role=None, hint="rank3.pt.trace.json").items
    return item.readings[0]


def test_a_large_trace_reads_as_a_small_one() -> None:
    small, large = _trace(30), _trace(30_000)
    assert len(large) > 9 * 2**20 > len(small)
    found = _read(large)
    assert found.kind is ReadingKind.KNOWN
    assert found.value == _read(small).value
    assert "of rank 3" in found.detail


def test_a_large_trace_that_is_cut_says_so() -> None:
    found = _read(_trace(30_000)[:-40])
    assert (found.kind, found.value) == (ReadingKind.UNREADABLE, None)
    assert "the file is cut" in found.detail
