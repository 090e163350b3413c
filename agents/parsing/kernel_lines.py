"""JSON lines of the kernels payload (schemas peerpath.memory/1 and peerpath.launch/1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.facts.bench import Timing
from agents.facts.kernels import Figures, LaunchRow, MemoryRow, Work
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, stats_of, text_of, whole_of

MEMORY_SCHEMA, LAUNCH_SCHEMA = "peerpath.memory/1", "peerpath.launch/1"
_KERNELS = frozenset({"read", "copy", "triad"})
_METHODS = {Timing.DEVICE: frozenset({"queued", "graph"}), Timing.HOST_SYNC: frozenset({"call", "no_wait"})}

Row = TypeVar("Row", MemoryRow, LaunchRow)


@dataclass(frozen=True, slots=True)
class KernelLines(Generic[Row]):
    """payload: the frame around the rows. why_no_gpu: why the rows say nothing about GPUs, "" if they do."""

    rows: tuple[Row, ...]
    payload: PayloadLines
    environment: Mapping[str, str]
    why_no_gpu: str

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(row.line for row in self.rows)


def memory(text: str) -> KernelLines[MemoryRow]:
    return _read_rows(text, MEMORY_SCHEMA, _memory_row)


def launch(text: str) -> KernelLines[LaunchRow]:
    return _read_rows(text, LAUNCH_SCHEMA, _launch_row)


def _read_rows(text: str, schema: str, make: Callable[[Mapping[str, Any], int], Row | None]) -> KernelLines[Row]:
    payload = payload_lines.read(text, schema)
    rows = tuple(row for number, line in payload.rows if (row := make(line, number)))
    environment = dict(payload.environment)
    if payload.notes:
        environment["notes"] = "; ".join(payload.notes)
    why_no_gpu = "the CPU played one, to try the program" if environment.get("device") == "cpu" else ""
    return KernelLines(rows, payload, environment, why_no_gpu)


def _figures(fields: Mapping[str, Any]) -> Figures | None:
    """None when the line lacks the time or its timing."""
    time_us, timing = number_of(fields.get("time_us")), text_of(fields.get("timing", ""))
    if time_us is None or time_us <= 0 or timing not in set(_METHODS):
        return None
    if fields.get("method") not in _METHODS[Timing(timing)]:
        return None
    return Figures(time_us, Timing(timing), text_of(fields["method"]), **stats_of(fields))


def _memory_row(fields: Mapping[str, Any], line: int) -> MemoryRow | None:
    """The row with a recomputed rate; None when the printed rate differs from it by more than 5 %."""
    figures = _figures(fields)
    size, moved, l2 = (whole_of(fields, name) for name in ("size_bytes", "moved_bytes", "l2_bytes"))
    if figures is None or not size or not moved or fields.get("kernel") not in _KERNELS:
        return None
    rate, printed = moved / figures.time_us / 1e3, number_of(fields.get("gb_per_s"))
    if printed is not None and abs(printed - rate) > 0.05 * rate:
        return None
    gpu, kernel = text_of(fields.get("gpu", "?")), text_of(fields["kernel"])
    return MemoryRow(gpu, kernel, size, moved, l2 or 0, rate, figures, line)


def _launch_row(fields: Mapping[str, Any], line: int) -> LaunchRow | None:
    figures = _figures(fields)
    if figures is None or fields.get("what") not in {str(work) for work in Work}:
        return None
    beyond = fields.get("beyond_l2")
    weight_bytes = whole_of(fields, "weight_bytes")
    return LaunchRow(
        Work(fields["what"]),
        text_of(fields.get("gpu", "?")),
        figures,
        batch=whole_of(fields, "batch"),
        hidden=whole_of(fields, "hidden"),
        intermediate=whole_of(fields, "intermediate"),
        dtype=text_of(fields.get("dtype", "")),
        experts=whole_of(fields, "experts"),
        kernels=whole_of(fields, "kernels"),
        weight_bytes=weight_bytes,
        beyond_l2=beyond if isinstance(beyond, bool) else None,
        gb_per_s=weight_bytes / figures.time_us / 1e3 if weight_bytes else None,
        line=line,
    )
