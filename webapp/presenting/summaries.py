"""One line of words for the value of a fact, for tables and live output."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agents.facts.bench import CopyResult
from agents.facts.kernels import LaunchResult, MemoryResult
from agents.facts.p2p import P2pMatrix, TopologyMatrix
from agents.facts.vm import HostPci, Vm
from webapp.diagnosis.wording import called
from webapp.presenting.fact_lists import LISTS, ONES, counted
from webapp.records import reading_codec

LONGEST = 140


def reading_words(stored: Any) -> str:
    """The value of a stored reading in words, through the type of its fact."""
    row = reading_codec.Row(stored.fact_id, stored.kind, stored.value, stored.detail, stored.lines, stored.missing)
    return summary(reading_codec.decode(row).value)


def summary(value: Any) -> str:
    """Never longer than LONGEST characters."""
    text = _words(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, P2pMatrix):
        return counted(value.pairs().values(), "ordered pairs")
    if isinstance(value, TopologyMatrix):
        return f"{len(value.gpus)} GPUs; " + counted(value.gpu_links().values(), "pairs")
    if isinstance(value, CopyResult | MemoryResult | LaunchResult):
        return _row_count(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_words(v)}" for k, v in value.items()) or "none"
    if isinstance(value, tuple | list):
        return _list_words(list(value))
    if formatter := ONES.get(type(value)):
        return formatter(value)
    if is_dataclass(value):
        return _record_words(value)
    return called(value)


def _row_count(value: CopyResult | MemoryResult | LaunchResult) -> str:
    if isinstance(value, MemoryResult):
        rates = dict.fromkeys(sorted({row.gpu for row in value.rows}), 0.0)
        for row in value.rows:
            rates[row.gpu] = max(rates[row.gpu], row.gb_per_s)
        return ", ".join(f"GPU {gpu} {rate:.0f} GB/s" for gpu, rate in rates.items())
    rejected = value.rejected if isinstance(value, CopyResult) else ()
    return f"{len(value.rows)} rows" + (f", {len(rejected)} left out" if rejected else "")


def _list_words(items: list[Any]) -> str:
    if not items:
        return "none"
    if formatter := LISTS.get(type(items[0])):
        return formatter(items)
    if configured := [vm for vm in items if isinstance(vm, Vm) and (vm.config or vm.hostpci)]:
        return f"{len(items)}: " + "; ".join(map(_vm, configured[:3]))
    names = [getattr(item, "name", None) for item in items]
    if all(isinstance(name, str) for name in names):
        return ", ".join(f"{n} × {name}" for name, n in Counter(names).items())
    return f"{len(items)}: " + "; ".join(_words(item) for item in items[:3])


def _vm(vm: Vm) -> str:
    """The settings that decide about P2P: the board, passed-through devices, and the arguments."""
    passed = Counter(map(_hostpci_text, vm.hostpci))
    parts = (
        "VM" if vm.id is None else f"VM {vm.id}",
        vm.name,
        f"machine {vm.machine}" if vm.machine else None,
        "hostpci " + ", ".join(f"{n} × {what}" if n > 1 else what for what, n in passed.items()) if passed else None,
        f"args {vm.args}" if vm.args else None,
    )
    return " ".join(filter(None, parts))


def _hostpci_text(device: HostPci) -> str:
    return f"{device.mapping or ' '.join(device.addresses)}{' pcie=1' if device.pcie else ''}"


def _record_words(value: Any) -> str:
    own = type(value).__annotations__  # a row's own fields first, then the statistics it inherits
    ordered = sorted(fields(value), key=lambda f: f.name not in own)
    entries = ((f.name, getattr(value, f.name)) for f in ordered)
    return " ".join(
        f"{name.removesuffix('_').replace('_', ' ')} {_words(v)}" for name, v in entries if v not in (None, "", (), {})
    )
