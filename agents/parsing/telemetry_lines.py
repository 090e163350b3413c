"""Telemetry lines of a payload: one names the columns, then one for each sample of all GPUs.

The bits of throttling are NVML's (nvmlClocksEventReasons, https://docs.nvidia.com/deploy/nvml-api/, read in November
2026). Idle clocks and clocks that somebody set do not count as throttling.
"""

from collections import defaultdict
from statistics import median
from typing import Any

from agents.facts.bench import GpuTelemetry
from agents.parsing.payload_lines import PayloadLines, number_of

THROTTLING = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_BUSY_LOOKS = 3  # fewer do not represent the work; then all samples count
_MOST_GPUS = 64

Look = dict[str, float]


def parse(payload: PayloadLines) -> tuple[tuple[GpuTelemetry, ...], tuple[int, ...]]:
    """One entry per GPU, in order, and the lines of the samples. Medians are over the samples in which a kernel ran,
    if there are any; the highest temperature and link are over all."""
    columns: list[str] = []
    every_s: float | None = None
    looks: dict[int, list[Look]] = defaultdict(list)
    lines: list[int] = []
    for number, line in payload.looks:
        if isinstance(line.get("telemetry"), list):
            columns = [str(name) for name in line["telemetry"]]
            every_s = number_of(line.get("every_s"))
            continue
        rows = [row for cells in _as_list(line.get("gpus")) if (row := _parse_row(columns, cells))]
        for row in rows[:_MOST_GPUS]:
            looks[int(row["gpu"])].append(row)
        lines += [number] if rows else []
    return tuple(_summary(gpu, looks[gpu], every_s) for gpu in sorted(looks)), tuple(lines)


def _parse_row(columns: list[str], cells: Any) -> Look | None:
    """The figures of the sample; None without the GPU's number."""
    if not isinstance(cells, list) or len(cells) != len(columns):
        return None
    named = zip(columns, map(number_of, cells), strict=True)
    row = {name: value for name, value in named if value is not None and value >= 0}
    return row if row.get("gpu", -1).is_integer() else None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _summary(gpu: int, every: list[Look], every_s: float | None) -> GpuTelemetry:
    busy = [row for row in every if row.get("busy_percent", 0) > 0]
    rows = busy if len(busy) >= _BUSY_LOOKS else every
    middle, most = _medians(rows), _highest(every)
    reasons = [_reasons(row) for row in rows if "throttle_bits" in row]
    throttled = 100 * sum(map(bool, reasons)) / len(reasons) if reasons else None
    return GpuTelemetry(
        str(gpu),
        len(rows),
        power_w=middle.get("power_w"),
        power_max_w=most.get("power_w"),
        busy_percent=middle.get("busy_percent"),
        memory_busy_percent=middle.get("memory_busy_percent"),
        memory_used_mib=middle.get("memory_used_mib"),
        sm_clock_mhz=_whole_number(middle.get("sm_clock_mhz")),
        temperature_celsius=_whole_number(most.get("temperature_celsius")),
        memory_clock_mhz=_whole_number(middle.get("memory_clock_mhz")),
        pcie_gen=_whole_number(most.get("pcie_gen")),
        pcie_width=_whole_number(most.get("pcie_width")),
        throttle_reasons=tuple(word for word in THROTTLING.values() if any(word in r for r in reasons)),
        throttled_percent=throttled,
        every_s=every_s,
    )


def _reasons(row: Look) -> tuple[str, ...]:
    bits = int(row["throttle_bits"])
    return tuple(word for bit, word in THROTTLING.items() if bits & bit)


def _medians(rows: list[Look]) -> Look:
    names = {name for row in rows for name in row}
    return {n: round(median(row[n] for row in rows if n in row), 6) for n in names}


def _highest(rows: list[Look]) -> Look:
    names = {name for row in rows for name in row}
    return {n: max(row[n] for row in rows if n in row) for n in names}


def _whole_number(value: float | None) -> int | None:
    return None if value is None else int(value)
