"""The result block of vLLM's and SGLang's serving benchmarks.

vLLM `vllm bench serve` (benchmarks/benchmark_serving.py before 0.10) and SGLang
`sglang.bench_serving`: "============ Serving Benchmark Result ============", then `Name: value` lines.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.facts.bench import ServingRow

_QUOTE = re.compile(r"^(?:\s*[>|]\s?)+")
_START = re.compile(r"^\s*=+ Serving Benchmark Result =+\s*$")
_END = re.compile(r"^\s*={20,}\s*$")
_FIELD = re.compile(r"^\s*([A-Za-z][^:]{2,60}?):\s+(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)\s*$")
_COMMAND = re.compile(r"--(?:max-concurrency|concurrency)[ =](\d+)")
# vLLM prints the limit only if there is one; SGLang's plain "Concurrency" is the observed average.
_LIMITS = ("max request concurrency", "maximum request concurrency")


@dataclass
class _Block:
    fields: dict[str, float] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    concurrency: int | None = None


def parse(text: str) -> tuple[tuple[ServingRow, ...], tuple[int, ...]]:
    """One row for each block that holds an output throughput, and the lines of those blocks."""
    blocks = [b for b in _blocks(text) if "output token throughput (tok/s)" in b.fields]
    return tuple(_row_of_block(b) for b in blocks), tuple(n for b in blocks for n in b.lines)


def _blocks(text: str) -> Iterator[_Block]:
    block: _Block | None = None
    concurrency: int | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw)
        if command := _COMMAND.search(line):
            concurrency = int(command[1])
        if _START.match(line):
            if block:
                yield block
            block = _Block(concurrency=concurrency)
        elif block and _END.match(line):
            yield block
            block = None
        elif block and (match := _FIELD.match(line)):
            value = float(match[2])
            if math.isfinite(value):
                block.fields.setdefault(match[1].strip().lower(), value)
                block.lines.append(number)
    if block:
        yield block


def _row_of_block(block: _Block) -> ServingRow:
    get = block.fields.get
    limit = next((int(block.fields[name]) for name in _LIMITS if name in block.fields), None)
    requests = get("successful requests")
    return ServingRow(
        limit if limit is not None else block.concurrency,
        get("output token throughput (tok/s)"),
        get("total token throughput (tok/s)"),
        get("median tpot (ms)", get("mean tpot (ms)")),
        None if requests is None else int(requests),
        tpot_p99_ms=get("p99 tpot (ms)"),
        ttft_ms=get("median ttft (ms)"),
        ttft_p99_ms=get("p99 ttft (ms)"),
        itl_ms=get("median itl (ms)"),
        itl_p99_ms=get("p99 itl (ms)"),
    )
