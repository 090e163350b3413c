"""One side of a comparison, and the conditions under which its results were measured.

Every function returns one text or figure of a side, or None when it is unknown.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from agents.facts import Fact, ReadingKind
from agents.facts.bench import SERVING, TELEMETRY, AllReduceResult, CopyResult, GpuTelemetry, Timing
from agents.facts.gpu import GPU_COUNT_SMI, GPU_PROCESSES, GPUS, Gpu
from agents.facts.host import CPU_GOVERNOR, HOST_CMDLINE
from agents.facts.nccl import ENGINE, NCCL_ENV, NCCL_VERSION
from agents.facts.platform import CUDA_VERSION, DRIVER_VERSION, KERNEL_CMDLINE, MACHINE_TYPE, NUMA_NODES, SOFTWARE
from agents.facts.vm import VM_ARGS, VM_CPU, VM_HOSTPCI, VM_ID, VM_MACHINE
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation.vm import with_vm
from webapp.diagnosis.wording import called

Value = str | float | None
_BOOTED = re.compile(r"(?:vmlinuz-|initrd\.img-)([\w.+-]+)")
# Arguments that change neither what is measured nor how; `settings` tells what was set.
_ASIDE = re.compile(r"--(?:limit|telemetry-seconds|seed|set)[= ]\S+|--force")


@dataclass(frozen=True, slots=True)
class Side:
    """results: of one kind of measurement, oldest first. facts: what else was read in their epoch."""

    results: tuple[Sourced, ...]
    facts: Facts

    @property
    def is_serving(self) -> bool:
        return any(item.reading.fact_id == SERVING.id for item in self.results)

    @property
    def values(self) -> list[Any]:
        return [item.reading.value for item in self.results]

    def header(self, name: str) -> str | None:
        """The entry of this name in the results' environment; None unless every result has one."""
        entries = [_environment(value).get(name, "") for value in self.values]
        return _joined(entries) if entries and all(entries) else None

    def fact(self, fact: Fact[Any]) -> Any:
        """The known value read in this epoch."""
        return self.facts.value(fact)

    def words(self, fact: Fact[Any]) -> str | None:
        value = self.fact(fact)
        return None if value is None else str(value)

    def watched(self, figure: Callable[[GpuTelemetry], float | None]) -> list[float]:
        """The figures of each GPU that telemetry watched during the measurement."""
        sources = {item.source for item in self.results}
        looks = [item for item in self.facts.all(TELEMETRY) if item.source in sources]
        figures = [figure(gpu) for item in looks for gpu in item.reading.value or ()]
        return [float(value) for value in figures if value is not None]


def side_of(results: Iterable[Sourced], facts: Facts) -> Side:
    """facts: all of the session, with its VM. Those of the results' epochs count."""
    chosen = tuple(results)
    return Side(chosen, facts_in(facts, {item.epoch for item in chosen}))


def facts_in(facts: Facts, epochs: Collection[int]) -> Facts:
    """The facts read in these epochs alone. A fact that was absent in one of them is absent."""
    every = (item for group in facts.readings.values() for item in group)
    here = [i for i in every if i.epoch in epochs and not i.reading.fact_id.startswith("vm.")]
    return with_vm(Facts.of(here), facts.value(VM_ID))


def _environment(value: Any) -> Mapping[str, str]:
    environment: Mapping[str, str] = getattr(value, "environment", {})
    return environment


def _joined(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def driver(side: Side) -> Value:
    return side.header("driver") or side.words(DRIVER_VERSION)


def cuda(side: Side) -> Value:
    return side.header("cuda") or side.words(CUDA_VERSION)


def nccl(side: Side) -> Value:
    return side.header("nccl") or side.words(NCCL_VERSION)


def torch(side: Side) -> Value:
    return side.header("torch") or (side.fact(SOFTWARE) or {}).get("torch")


def kernel(side: Side) -> Value:
    booted = _BOOTED.search(side.fact(KERNEL_CMDLINE) or "")
    return side.header("kernel") or (booted[1] if booted else None)


def guest_cmdline(side: Side) -> Value:
    return _parameters(side.fact(KERNEL_CMDLINE))


def host_cmdline(side: Side) -> Value:
    return _parameters(side.fact(HOST_CMDLINE))


def _parameters(line: str | None) -> str | None:
    """Without the kernel's own file, which `kernel` tells; order means nothing here."""
    if line is None:
        return None
    words = [w for w in line.split() if not w.startswith(("BOOT_IMAGE=", "initrd="))]
    return " ".join(sorted(words)) or "none"


def governor(side: Side) -> Value:
    """The governors of all CPUs; None when only some were read, because one CPU tells nothing of the others."""
    best = side.facts.best(CPU_GOVERNOR)
    if best and best.reading.kind is ReadingKind.ABSENT:
        return "none to set"
    if best is None or best.reading.value is None or not best.reading.complete:
        return None
    return ", ".join(f"{name} on {n} CPUs" for name, n in best.reading.value.governors.items())


def machine(side: Side) -> Value:
    machine_type = side.fact(VM_MACHINE) or side.fact(MACHINE_TYPE)
    return called(machine_type) if machine_type else None


def hostpci(side: Side) -> Value:
    devices = side.fact(VM_HOSTPCI)
    if devices is None:
        return None
    kinds = sorted(f"{d.mapping or 'address'}{',pcie=1' if d.pcie else ''}" for d in devices)
    return ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds))


def vm_cpu(side: Side) -> Value:
    return _configured_text(side.facts, VM_CPU)


def vm_args(side: Side) -> Value:
    return _configured_text(side.facts, VM_ARGS)


def _configured_text(facts: Facts, fact: Fact[Any]) -> str | None:
    """The value, or "not set" when the configuration was read and does not have it."""
    if facts.kind(fact) is ReadingKind.ABSENT:
        return "not set"
    value = facts.value(fact)
    return None if value is None else str(value)


def gpu_names(side: Side) -> Value:
    """The cards by their ids where these are known, else the product's name."""
    gpus: tuple[Gpu, ...] = side.fact(GPUS) or ()
    names = sorted({gpu.name for gpu in gpus if gpu.name})
    return side.header("gpu_uuids") or side.header("gpus") or ", ".join(names) or None


def gpu_count(side: Side) -> Value:
    named = side.header("gpus")
    counted = len(named.split(", ")) if named else side.fact(GPU_COUNT_SMI)
    return None if counted is None else str(counted)


def sm_clock_mhz(side: Side) -> Value:
    clocks = side.watched(lambda gpu: gpu.sm_clock_mhz)
    return round(median(clocks)) * 1.0 if clocks else None


def power_limit_w(side: Side) -> Value:
    limits_w = side.header("power_limits_w")
    if limits_w:
        return limits_w
    limits = [gpu.power_limit_w for gpu in side.fact(GPUS) or () if gpu.power_limit_w]
    return float(min(limits)) if limits else None


def ecc(side: Side) -> Value:
    return side.header("ecc")


def temperature_celsius(side: Side) -> Value:
    return max(side.watched(lambda gpu: gpu.temperature_celsius), default=None)


def throttling(side: Side) -> Value:
    sources = {item.source for item in side.results}
    looks = [item for item in side.facts.all(TELEMETRY) if item.source in sources]
    gpus = [gpu for item in looks for gpu in item.reading.value or ()]
    reasons = sorted({reason for gpu in gpus for reason in gpu.throttle_reasons})
    return (", ".join(reasons) or "nothing") if gpus else None


def link_under_load(side: Side) -> Value:
    gens, widths = (side.watched(lambda g: g.pcie_gen), side.watched(lambda g: g.pcie_width))
    return f"Gen{min(gens):.0f} x{min(widths):.0f}" if gens and widths else None


def other_work(side: Side) -> Value:
    if side.is_serving:
        return "the engine itself"
    environments = [_environment(value) for value in side.values]
    if any(environment.get("beside_other_work") for environment in environments):
        return "yes"
    if environments and all("payload_sha256" in environment for environment in environments):
        return "none"  # our programs refuse busy GPUs, and record when --force was given
    processes = side.fact(GPU_PROCESSES)
    return None if processes is None else "yes" if processes else "none"


def numa(side: Side) -> Value:
    nodes = side.fact(NUMA_NODES)
    return None if nodes is None else "; ".join(f"{node.id}: CPUs {node.cpus}" for node in nodes)


def payload(side: Side) -> Value:
    sha256 = side.header("payload_sha256")
    return sha256 and " or ".join(part[:12] for part in sha256.split(" or "))


def arguments(side: Side) -> Value:
    if any("argv" not in _environment(value) for value in side.values):
        return None
    return _joined(" ".join(_ASIDE.sub("", _environment(v)["argv"]).split()) for v in side.values) or "none"


def settings(side: Side) -> Value:
    if side.values and all("settings" in _environment(value) for value in side.values):
        return _joined(_environment(value)["settings"] for value in side.values) or "none"
    environment = side.fact(NCCL_ENV)
    return None if environment is None else " ".join(f"{k}={v}" for k, v in sorted(environment.items())) or "none"


def timing(side: Side) -> Value:
    ways = {way for value in side.values for way in _timings(value)}
    if not ways or (Timing.UNKNOWN in ways and Timing.DEVICE not in ways):
        return None if not ways else "as printed"
    return "on the device" if Timing.DEVICE in ways else "with synchronise"


def _timings(value: Any) -> set[Timing]:
    if isinstance(value, CopyResult):
        return {row.timing for row in value.rows}
    if isinstance(value, AllReduceResult):
        return {Timing.DEVICE if any(row.graph for row in value.rows) else value.timing}
    return {Timing.HOST_SYNC} if isinstance(value, tuple) else set()


def sizes(side: Side) -> Value:
    size_set = {size for value in side.values for size in _sizes(value)}
    return ", ".join(map(str, sorted(size_set))) or None


def _sizes(value: Any) -> list[int]:
    if isinstance(value, tuple):
        return [row.concurrency for row in value if row.concurrency]
    return [row.size_bytes for row in value.rows if row.size_bytes]


def samples(side: Side) -> Value:
    rows = [row for v in side.values for row in (v if isinstance(v, tuple) else v.rows)]
    counted = [getattr(row, "samples", None) or getattr(row, "requests", None) for row in rows]
    known = [float(count) for count in counted if count]
    return median(known) if known else None


def engine(side: Side) -> Value:
    engine_facts = side.fact(ENGINE)
    if engine_facts is None:
        return None
    flags = " ".join(f"{name} {value}".strip() for name, value in sorted(engine_facts.flags.items()))
    return " ".join(filter(None, [engine_facts.name, engine_facts.version, flags]))


def client(side: Side) -> Value:
    """As the load generator says; prompts of another seed are the same kind of prompts."""
    descriptions = [re.sub(r",? ?seed \d+", "", item.reading.detail) for item in side.results]
    return _joined(descriptions) if descriptions and all(descriptions) else None
