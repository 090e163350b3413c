"""Samples of running GPUs: `nvidia-smi dmon`, `dcgmi dmon`, `nvidia-smi pmon`.

nvidia-smi dmon (driver 580): "# gpu pwr gtemp … sm mem …" and "# Idx W C … %" head the columns, again
every few rows; --format csv puts commas between; -o DT puts date and time first; "-" stands for no value.
PCIe is MB/s, of 10⁶ bytes. dcgmi dmon (DCGM 3 and 4): "#Entity GPUTL POWER SMACT …", then "GPU 0 …"; the
profiling fields are shares of 1, its PCITX, PCIRX, NVLTX and NVLRX bytes a second.
"""

import re
from collections import defaultdict
from statistics import median

from agents.facts.bench import GpuTelemetry
from agents.facts.gpu import GpuProcess

_LINE_CAP = 2000
_QUOTE = re.compile(r"^(?:\s{0,4}[>|]\s?)+")
# Column -> field, factor, largest credible value.
_SMI: dict[str, tuple[str, float, float]] = {
    "pwr": ("power_w", 1, 5000),
    "gtemp": ("temperature_celsius", 1, 200),
    "sm": ("busy_percent", 1, 100),
    "mem": ("memory_busy_percent", 1, 100),
    "pclk": ("sm_clock_mhz", 1, 10_000),
    "fb": ("memory_used_mib", 1, 10_000_000),
    "rxpci": ("pcie_rx_gb_per_s", 1e-3, 1000),
    "txpci": ("pcie_tx_gb_per_s", 1e-3, 1000),
}
_DCGM: dict[str, tuple[str, float, float]] = {
    "GPUTL": ("busy_percent", 1, 100),
    "MCUTL": ("memory_busy_percent", 1, 100),
    "POWER": ("power_w", 1, 5000),
    "POWR": ("power_w", 1, 5000),
    "TMPTR": ("temperature_celsius", 1, 200),
    "SMCLK": ("sm_clock_mhz", 1, 10_000),
    "FBUSD": ("memory_used_mib", 1, 10_000_000),
    "SMACT": ("sm_active_percent", 100, 100.5),
    "TENSO": ("tensor_percent", 100, 100.5),
    "DRAMA": ("dram_percent", 100, 100.5),
    "PCITX": ("pcie_tx_gb_per_s", 1e-9, 1000),
    "PCIRX": ("pcie_rx_gb_per_s", 1e-9, 1000),
    "NVLTX": ("nvlink_tx_gb_per_s", 1e-9, 10_000),
    "NVLRX": ("nvlink_rx_gb_per_s", 1e-9, 10_000),
}
_GPU = re.compile(r"^GPU (\d{1,3})\s+(?=\S)")
_VALUE = re.compile(r"\d{1,15}(?:\.\d{1,6})?")

Found = tuple[tuple[GpuTelemetry, ...], tuple[int, ...]]


def parse(text: str) -> Found:
    """One entry a GPU, in order, and the lines of its samples."""
    columns: list[str] = []
    fields: dict[str, tuple[str, float, float]] = {}
    samples: dict[str, list[dict[str, float]]] = defaultdict(list)
    lines: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:_LINE_CAP]).strip()
        if line.startswith("#"):
            columns, fields = _parse_head(line, columns, fields)
        elif columns and (row := _parse_row(columns, fields, line)):
            gpu, values = row
            samples[gpu].append(values)
            lines.append(number)
    gpus = sorted(samples, key=int)
    return tuple(_summary(gpu, samples[gpu]) for gpu in gpus), tuple(lines)


def _parse_head(
    line: str, columns: list[str], fields: dict[str, tuple[str, float, float]]
) -> tuple[list[str], dict[str, tuple[str, float, float]]]:
    """The names of the columns; a line of units keeps those above it."""
    words = line.lstrip("# ").replace(",", " ").split()
    if words[:1] == ["Entity"]:
        return words[1:], _DCGM
    if "gpu" in words and "pid" not in words:
        return words, _SMI
    return ([], {}) if "pid" in words else (columns, fields)


def _parse_row(
    columns: list[str], fields: dict[str, tuple[str, float, float]], line: str
) -> tuple[str, dict[str, float]] | None:
    """The GPU and its readable cells; None when the number of cells differs from the head's."""
    entity = _GPU.match(line)
    cells = (line[entity.end() :] if entity else line).replace(",", " ").split()
    if len(cells) != len(columns) or (fields is _DCGM) != bool(entity):
        return None
    by_column = dict(zip(columns, cells, strict=True))
    gpu = entity[1] if entity else by_column["gpu"]
    if not re.fullmatch(r"[0-9]{1,3}", gpu):
        return None
    values: dict[str, float] = {}
    for column, (name, scale, most) in fields.items():
        if _VALUE.fullmatch(by_column.get(column, "")) and float(by_column[column]) * scale <= most:
            values[name] = float(by_column[column]) * scale
    return (gpu, values) if values else None


def _summary(gpu: str, rows: list[dict[str, float]]) -> GpuTelemetry:
    def middle(name: str) -> float | None:
        values = [row[name] for row in rows if name in row]
        return round(median(values), 6) if values else None

    clock, warmth = middle("sm_clock_mhz"), middle("temperature_celsius")
    return GpuTelemetry(
        gpu,
        len(rows),
        middle("power_w"),
        max((row["power_w"] for row in rows if "power_w" in row), default=None),
        middle("busy_percent"),
        middle("memory_busy_percent"),
        middle("sm_active_percent"),
        middle("tensor_percent"),
        middle("dram_percent"),
        middle("pcie_rx_gb_per_s"),
        middle("pcie_tx_gb_per_s"),
        middle("nvlink_rx_gb_per_s"),
        middle("nvlink_tx_gb_per_s"),
        middle("memory_used_mib"),
        None if clock is None else int(clock),
        None if warmth is None else int(warmth),
    )


def processes(text: str) -> tuple[tuple[GpuProcess, ...], tuple[int, ...]] | None:
    """`nvidia-smi pmon`: each process once; None without its head."""
    columns: list[str] = []
    by_gpu_and_pid: dict[tuple[int, int], GpuProcess] = {}
    lines: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:_LINE_CAP]).strip()
        words = line.lstrip("# ").split()
        if line.startswith("#") and {"gpu", "pid", "command"} <= set(words):
            columns = words
        elif columns and not line.startswith("#") and len(words) >= len(columns):
            by_column = dict(
                zip(columns, [*words[: len(columns) - 1], " ".join(words[len(columns) - 1 :])], strict=True)
            )
            lines.append(number)
            if process := _process(by_column):
                by_gpu_and_pid.setdefault((process.gpu_index or 0, process.pid), process)
    return (tuple(by_gpu_and_pid.values()), tuple(lines)) if columns and lines else None


def _process(by_column: dict[str, str]) -> GpuProcess | None:
    gpu, pid = by_column["gpu"], by_column["pid"]
    if not re.fullmatch(r"[0-9]{1,3}", gpu) or not re.fullmatch(r"[0-9]{1,10}", pid):
        return None
    memory = by_column.get("fb", "")
    used = int(memory) if re.fullmatch(r"[0-9]{1,8}", memory) else None
    return GpuProcess(int(gpu), int(pid), by_column["command"], used)
