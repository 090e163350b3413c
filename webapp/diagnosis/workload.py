"""What the operator says (the workload file or form) as readings of the `user.*` facts.

Tables: [model], [parallelism], [[observed]], [goal], [host], and the text `notes`. Keys are those of
agents/facts/workload.py. A range is one number or [low, high].
"""

from collections.abc import Callable, Mapping
from typing import Any

from agents.facts import Reading
from agents.facts.workload import (
    GOAL,
    HOST_ROOT,
    MAY_CHANGE,
    MODEL,
    NOTES,
    OBSERVED,
    PARALLELISM,
    WHY_VM,
    Goal,
    Model,
    Observed,
    Parallelism,
)

Check = Callable[[str, object], object]
HOST_ROOTS = ("yes", "no", "ask admin")
MAY_CHANGES = ("guest", "vm", "host", "bare metal")


def read_workload(data: Mapping[str, object]) -> tuple[Reading[Any], ...]:
    """One reading for each thing said. Raises ValueError naming the key for anything unexpected."""
    _no_others("the workload", data, ("model", "parallelism", "observed", "goal", "host", "notes"))
    readings: list[Reading[Any]] = []
    if "model" in data:
        readings.append(MODEL.known(Model(**_table("model", data["model"], _MODEL))))
    if "parallelism" in data:
        values = _table("parallelism", data["parallelism"], _PARALLELISM)
        readings.append(PARALLELISM.known(Parallelism(**values)))
    if "observed" in data:
        readings.append(OBSERVED.known(_observed(data["observed"])))
    if "goal" in data:
        readings.append(GOAL.known(Goal(**_table("goal", data["goal"], _GOAL))))
    if "notes" in data:
        readings.append(NOTES.known(_text("notes", data["notes"])))
    return (*readings, *_host(data.get("host", {})))


def _host(table: object) -> list[Reading[Any]]:
    """The three questions to whoever runs the hypervisor."""
    values = _table("host", table, _HOST)
    readings: list[Reading[Any]] = []
    if "host_root" in values:
        readings.append(HOST_ROOT.known(values["host_root"]))
    if "why_vm" in values:
        readings.append(WHY_VM.known(values["why_vm"]))
    if "may_change" in values:
        readings.append(MAY_CHANGE.known(values["may_change"]))
    return readings


def _observed(rows: object) -> tuple[Observed, ...]:
    if not isinstance(rows, list | tuple):
        raise ValueError("observed must be a list of tables: [[observed]]")
    readings = []
    for number, row in enumerate(rows, 1):
        values = _table(f"observed {number}", row, _OBSERVED)
        if "concurrency" not in values:
            raise ValueError(f"observed {number}: concurrency is missing (1 for a single stream)")
        readings.append(Observed(**values))
    return tuple(readings)


def _table(name: str, table: object, checks: Mapping[str, Check]) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} must be a table")
    _no_others(name, table, tuple(checks))
    return {key: checks[key](f"{name}.{key}", value) for key, value in table.items()}


def _no_others(name: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{name}: unknown key {key!r}; known are {', '.join(known)}")


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text, not {value!r}")
    return value


def _yes_no(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, not {value!r}")
    return value


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e18:
        raise ValueError(f"{key} must be a number above 0, not {value!r}")
    return float(value)


def _count(key: str, value: object) -> int:
    """A whole number from 1."""
    number = _number(key, value)
    if number != int(number):
        raise ValueError(f"{key} must be a whole number, not {value!r}")
    return int(number)


def _count_or_zero(key: str, value: object) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else _count(key, value)


def _range(key: str, value: object) -> tuple[float, float]:
    if not isinstance(value, list | tuple):
        number = _number(key, value)
        return number, number
    if len(value) != 2:
        raise ValueError(f"{key} must be a number or [low, high], not {value!r}")
    low, high = _number(key, value[0]), _number(key, value[1])
    if low > high:
        raise ValueError(f"{key}: the low end comes first, not {value!r}")
    return low, high


def _choice(choices: tuple[str, ...]) -> Check:
    def check(key: str, value: object) -> str:
        if value not in choices:
            raise ValueError(f"{key} must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return check


def _choices(choices: tuple[str, ...]) -> Check:
    one = _choice(choices)

    def check(key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{key} must be a list of {', '.join(choices)}")
        return tuple(str(one(key, item)) for item in value)

    return check


_MODEL: dict[str, Check] = {
    "name": _text,
    "layers": _count,
    "hidden_size": _count,
    "activation_bytes": _count,
    "total_params": _number,
    "active_params": _number,
    "active_weight_bytes": _range,
    "weight_bytes": _range,
    "experts": _count,
    "experts_active": _count,
    "draft_tokens": _count_or_zero,
    "accepted_per_step": _range,
    "kv_bytes_per_token": _range,
}
_PARALLELISM: dict[str, Check] = {"tp": _count, "pp": _count, "ep": _count, "dp": _count, "dp_attention": _yes_no}
_OBSERVED: dict[str, Check] = {
    "concurrency": _count,
    "output_tokens_per_s": _range,
    "total_tokens_per_s": _range,
    "step_ms": _range,
}
_GOAL: dict[str, Check] = {"single_stream_tokens_per_s": _number, "total_tokens_per_s": _number, "text": _text}
_HOST: dict[str, Check] = {"host_root": _choice(HOST_ROOTS), "why_vm": _text, "may_change": _choices(MAY_CHANGES)}
