"""The start-up lines of vLLM and SGLang that decide how GPUs communicate.

vLLM 0.6-0.12: "Custom allreduce is disabled because …" (custom_all_reduce.py), "Graph capturing finished in 8
secs, took 0.31 GiB" (gpu_model_runner.py), "tensor_parallel_size=8", "enforce_eager=True", "Using Flash
Attention backend". SGLang 0.4-0.5: "Capture cuda graph end. Time elapsed: 12.30 s", "Attention backend
not explicitly specified. Use … backend by default.", server_args=ServerArgs(tp_size=8, …).
"""

import re
from dataclasses import dataclass, field, replace

from agents.facts.nccl import EngineStart
from agents.parsing.engine import masked

_LINE_CAP = 20_000
_AR_OFF = re.compile(
    r"[Cc]ustom all_?-?reduce (?:is )?disabled (?P<why>(?:because|due to|since) .{1,300}?)"
    r"(?: To (?:silence|avoid) this|$)"
)
_AR_OFF_FLAG = re.compile(r"disable_custom_all_reduce['\"]?\s?[=:]\s?(?P<value>True|False)")
_AR_ON = re.compile(
    r"Using \[[^\]]{0,80}'CUSTOM'[^\]]{0,80}\] all-reduce backends"
    r"|Registering \d+ cuda graph addresses|\bUsing custom all_?reduce\b"
)
_CAPTURED = re.compile(
    r"Graph capturing finished in (?P<secs>\d{1,5}) secs"
    r"|Capture cuda graph end\. Time elapsed: (?P<elapsed>\d{1,5}(?:\.\d{1,3})?) s"
)
_GRAPHS_FLAG = re.compile(r"(?:enforce_eager|disable_cuda_graph)['\"]?\s?[=:]\s?(?P<value>True|False)")
_EAGER = re.compile(r"Cudagraph is disabled under eager mode|cuda graph is disabled", re.IGNORECASE)
_SIZES = {
    "tp": re.compile(r"\b(?:tensor_parallel_size|tp_size)['\"]?\s?[=:]\s?(\d{1,4})"),
    "pp": re.compile(r"\b(?:pipeline_parallel_size|pp_size)['\"]?\s?[=:]\s?(\d{1,4})"),
    "dp": re.compile(r"\b(?:data_parallel_size|dp_size)['\"]?\s?[=:]\s?(\d{1,4})"),
    "ep": re.compile(r"\bep_size['\"]?\s?[=:]\s?(\d{1,4})"),
}
_ATTENTION = (
    re.compile(
        r"Using (?:AttentionBackendEnum\.)?(?P<name>[A-Z][\w -]{2,40}?)(?: attention)? backend"
        r"(?: on V\d engine)?[.,]?\s*(?:$|out of|from)"
    ),
    re.compile(r"[Uu]se (?P<name>\w{2,40}) (?:attention )?backend by default"),
    re.compile(r"\battention_backend['\"]?\s?[=:]\s?['\"](?P<name>\w{2,40})['\"]"),
)
_MOE = (
    re.compile(r"Using (?P<name>[\w ()/-]{2,60}?) backend for (?:\w{2,8} )?MoE"),
    re.compile(r"Using (?P<name>[\w ()/-]{2,60}?) (?:(?:\w{2,8} )?MoE|fused moe) (?:backend|kernel)", re.IGNORECASE),
    re.compile(r"\bmoe_(?:runner_)?backend['\"]?\s?[=:]\s?['\"](?P<name>\w{2,40})['\"]"),
)
_MARKS = ("raph", "llreduce", "ll_reduce", "ll-reduce", "_size", "backend", "Backend", "eager")


@dataclass
class _Log:
    start: EngineStart = field(default_factory=EngineStart)
    lines: list[int] = field(default_factory=list)


def parse(text: str) -> tuple[EngineStart, tuple[int, ...]] | None:
    """None when no line shows any of it. What happened counts before what a flag requests."""
    log = _Log()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:_LINE_CAP]
        if not any(mark in line for mark in _MARKS):
            continue
        before = log.start
        log.start = _read_line(before, line)
        if log.start != before:
            log.lines.append(number)
    return (log.start, tuple(log.lines)) if log.lines else None


def _read_line(start: EngineStart, line: str) -> EngineStart:
    """Each function only sees lines that hold its word, because logs are long."""
    if "backend" in line or "MoE" in line:
        start = _backends(start, line)
    if "_size" in line:
        start = _sizes(start, line)
    if "reduce" in line or "addresses" in line:
        start = _all_reduce(start, line)
    return _graphs(start, line) if "raph" in line or "eager" in line else start


def _all_reduce(start: EngineStart, line: str) -> EngineStart:
    if off := _AR_OFF.search(line):
        why = masked(off["why"].strip().rstrip("."))
        return replace(start, custom_all_reduce=False, custom_all_reduce_why=why)
    if _AR_ON.search(line) and start.custom_all_reduce is None:
        return replace(start, custom_all_reduce=True)
    flag = _AR_OFF_FLAG.search(line)
    if flag and flag["value"] == "True" and start.custom_all_reduce is None:
        return replace(start, custom_all_reduce=False, custom_all_reduce_why="switched off by a flag")
    return start


def _graphs(start: EngineStart, line: str) -> EngineStart:
    """A flag that leaves graphs on does not prove a capture."""
    if captured := _CAPTURED.search(line):
        seconds = float(captured["secs"] or captured["elapsed"])
        return replace(start, cuda_graphs=True, capture_s=max(seconds, start.capture_s or 0.0))
    if start.cuda_graphs is not None:
        return start
    flag = _GRAPHS_FLAG.search(line)
    if (flag and flag["value"] == "True") or _EAGER.search(line):
        return replace(start, cuda_graphs=False)
    return start


def _sizes(start: EngineStart, line: str) -> EngineStart:
    def size(name: str, known: int | None) -> int | None:
        match = _SIZES[name].search(line) if known is None else None
        return int(match[1]) or None if match else known

    tp, pp, dp, ep = (size("tp", start.tp), size("pp", start.pp), size("dp", start.dp), size("ep", start.ep))
    return replace(start, tp=tp, pp=pp, dp=dp, ep=ep)


def _backends(start: EngineStart, line: str) -> EngineStart:
    moe, attention = start.moe_backend, start.attention_backend
    if moe is None and ("MoE" in line or "moe" in line):
        moe = _first_match(_MOE, line)
    if attention is None and "backend" in line:
        attention = _first_match(_ATTENTION, line)
        attention = None if attention and "moe" in attention.lower() else attention
    return replace(start, moe_backend=moe, attention_backend=attention)


def _first_match(patterns: tuple[re.Pattern[str], ...], line: str) -> str | None:
    return next((match["name"].strip() for p in patterns if (match := p.search(line))), None)
