"""Measurements as plots and maps: copies, all-reduces, the load on an engine."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agents.facts.bench import AllReduceResult, CopyPath, CopyResult, CopyRow, PairMatrix, ServingRow, Timing
from webapp.presenting.plots import Plot, Point, log_plot

CONTROLS = frozenset({CopyPath.SYNCHRONISE, CopyPath.LAUNCH})
LEVELS = 5  # of a map's colours
ALIKE = 1.05  # a map whose cells differ by less has one colour: the rest is noise


def size_text(size_bytes: float) -> str:
    """ "12 KiB", "4 MiB"; exact multiples only get a whole number."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return (
                f"{size_bytes / factor:g} {unit}" if size_bytes % factor == 0 else f"{size_bytes / factor:.1f} {unit}"
            )
    return f"{size_bytes:g} B"


def _us(value: float) -> str:
    return f"{value:g} µs" if value >= 100 or value == int(value) else f"{value:.1f} µs"


def copy_plot(results: Iterable[tuple[str, CopyResult]]) -> Plot | None:
    """Time against size, one curve for each path and way of timing; None without rows."""
    curves = _copy_curves(results, lambda row: row.time_us)
    return log_plot("Time per copy in µs against size", curves, size_text, _us)


def bandwidth_plot(results: Iterable[tuple[str, CopyResult]]) -> Plot | None:
    """Bandwidth of the same rows; only rows timed on the device, which tell the path."""
    device = [(name, _device_rows(result)) for name, result in results]
    curves = _copy_curves(device, lambda row: row.gb_per_s)
    return log_plot("Bandwidth in GB/s against size", curves, size_text, lambda rate: f"{rate:g} GB/s")


def _device_rows(result: CopyResult) -> CopyResult:
    return CopyResult(tuple(row for row in result.rows if row.timing is Timing.DEVICE))


def _copy_curves(
    results: Iterable[tuple[str, CopyResult]], figure: Callable[[CopyRow], float | None]
) -> dict[str, list[Point]]:
    """Of the first pair of GPUs measured on each path; the table has all. Between GPUs first, and what was
    timed on the device: of many curves the first are drawn, and each has the same colour in both plots."""
    curves: dict[str, list[Point]] = {}
    for prefix, result in results:
        first: dict[str, tuple[str, str]] = {}
        for row in sorted(result.rows, key=_row_rank):
            value = figure(row)
            if row.path in CONTROLS or row.size_bytes <= 0 or not value or value <= 0:
                continue
            pair, name = (row.source, row.destination), _curve_name(row)
            if first.setdefault(name, pair) == pair:
                name = " ".join(filter(None, [prefix, name]))
                curves.setdefault(name, []).append((row.size_bytes, value))
    return curves


def _row_rank(row: CopyRow) -> tuple[bool, int]:
    order = (CopyPath.PEER, CopyPath.PEER_BOTH_WAYS, CopyPath.STAGED, CopyPath.SAME)
    place = order.index(row.path) if row.path in order else len(order)
    return row.timing is Timing.HOST_SYNC, place


def _curve_name(row: CopyRow) -> str:
    how = {Timing.DEVICE: "device-timed", Timing.HOST_SYNC: "with synchronise"}
    access = {None: "", True: " on", False: " off"}[row.peer_access]
    access = access if row.path in _BETWEEN else ""
    return f"{row.path.value.replace('_', ' ')}{access}, {how.get(row.timing, 'as printed')}"


_BETWEEN = frozenset({CopyPath.PEER, CopyPath.PEER_BOTH_WAYS})


def all_reduce_plot(result: AllReduceResult) -> Plot | None:
    """Time against size, one curve for each way of timing."""
    curves: dict[str, list[Point]] = {}
    for row in result.rows:
        if row.size_bytes > 0 and row.time_us > 0:
            how = "in a CUDA graph" if row.graph else row.method or "as printed"
            name = f"{how}, in place" if row.in_place else how
            curves.setdefault(name, []).append((row.size_bytes, row.time_us))
    return log_plot("Time per all-reduce in µs against size", curves, size_text, _us)


def serving_plots(rows: Sequence[ServingRow]) -> list[Plot]:
    """Tokens a second, and waiting times, against requests at once."""
    rates = {
        "output tok/s": _points_by_load(rows, lambda r: r.output_tokens_per_s),
        "total tok/s (with input)": _points_by_load(rows, lambda r: r.total_tokens_per_s),
    }
    waits = {
        "time per token": _points_by_load(rows, lambda r: r.time_per_output_token_ms),
        "to the first token": _points_by_load(rows, lambda r: r.ttft_ms),
    }
    plots = (
        log_plot("Tokens a second against requests at once", _with_points(rates), _count, _count),
        log_plot("Milliseconds against requests at once", _with_points(waits), _count, _ms),
    )
    return [plot for plot in plots if plot]


def _points_by_load(rows: Sequence[ServingRow], figure: Callable[[ServingRow], float | None]) -> list[Point]:
    return [
        (row.concurrency, value) for row in rows if row.concurrency and (value := figure(row)) is not None and value > 0
    ]


def _with_points(curves: dict[str, list[Point]]) -> dict[str, list[Point]]:
    return {name: points for name, points in curves.items() if points}


def _count(value: float) -> str:
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value:g} ms"


@dataclass(frozen=True, slots=True)
class Cell:
    """level: 0…4 between the least and the most of its map; None: not measured."""

    text: str
    level: int | None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """rows: by the GPU that sends, one cell for each that receives."""

    title: str
    gpus: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def copy_maps(result: CopyResult) -> list[HeatMap]:
    """Every pair: bandwidth at the largest size and time at the smallest, with peer access on and off."""
    rows = [r for r in result.rows if r.path is CopyPath.PEER and r.timing is not Timing.HOST_SYNC and r.size_bytes > 0]
    gpus = tuple(sorted({gpu for r in rows for gpu in (r.source, r.destination)}, key=_by_number))
    if len(gpus) < 3:  # two GPUs are two rows of the table
        return []
    maps = []
    for access in (True, False, None):
        of_access = [r for r in rows if r.peer_access is access]
        if of_access:
            how = {True: ", peer access on", False: ", peer access off", None: ""}[access]
            maps += _size_maps(of_access, gpus, how)
    return maps


def _size_maps(rows: Sequence[CopyRow], gpus: tuple[str, ...], how: str) -> list[HeatMap]:
    most, least = max(r.size_bytes for r in rows), min(r.size_bytes for r in rows)
    rates = {(r.source, r.destination): r.size_bytes / r.time_us / 1e3 for r in rows if r.size_bytes == most}
    times = {(r.source, r.destination): r.time_us for r in rows if r.size_bytes == least}
    return [_map(f"GB/s at {size_text(most)}{how}", gpus, rates), _map(f"µs at {size_text(least)}{how}", gpus, times)]


def matrix_map(matrix: PairMatrix) -> HeatMap:
    values = {
        (row_gpu, gpu): value
        for row_gpu, row in zip(matrix.gpus, matrix.values, strict=False)
        for gpu, value in zip(matrix.gpus, row, strict=False)
        if value is not None
    }
    title = matrix.title if matrix.unit in matrix.title else f"{matrix.title}, {matrix.unit}"
    return _map(title, matrix.gpus, values)


def _map(title: str, gpus: tuple[str, ...], values: dict[tuple[str, str], float]) -> HeatMap:
    between = [v for (a, b), v in values.items() if a != b and v > 0]
    low, high = (min(between), max(between)) if between else (0.0, 0.0)

    def cell(a: str, b: str) -> Cell:
        value = values.get((a, b))
        if value is None:
            return Cell("–", None)
        text = f"{value:.1f}" if value < 1000 else f"{value:,.0f}"
        return Cell(text, _level(value, low, high) if a != b else None)

    return HeatMap(title, gpus, tuple((a, tuple(cell(a, b) for b in gpus)) for a in gpus))


def _level(value: float, low: float, high: float) -> int:
    if value <= 0 or high < low * ALIKE:
        return LEVELS // 2
    share = math.log(value / low) / math.log(high / low)
    return min(LEVELS - 1, max(0, int(share * LEVELS)))


def _by_number(gpu: str) -> tuple[int, str]:
    return (int(gpu), "") if gpu.isdecimal() else (10**6, gpu)
