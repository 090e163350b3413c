"""The gate before any effect: are the results before the change comparable with those after it?

Each item is the same on both sides, changed as the decision meant it to, changed without that, or unknown. What the
programs say of themselves counts first (DECISIONS.md, record 16), then what the probes read in the same epoch.
Something that was not recorded on both sides is unknown, and never taken for the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webapp.diagnosis.compare import conditions
from webapp.diagnosis.compare.conditions import Side, Value


class Standing(StrEnum):
    SAME = "same"
    INTENDED = "intended"
    UNINTENDED = "unintended"
    UNKNOWN = "unknown"


class Gate(StrEnum):
    COMPARABLE = "comparable"
    CAVEATS = "with_caveats"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class Question:
    """One item of the gate. get: its value on one side, None when unknown.

    facts: ids of which one has to be among what the decision means to change, so that a change is intended. within:
    two figures this close, as a share of the larger, are the same. decides: a change that nobody meant makes the
    two sides incomparable. serving_only: asked of serving alone. overlap: one common entry is enough, because only
    what both sides have is compared.
    """

    title: str
    get: Callable[[Side], Value]
    facts: tuple[str, ...] = ()
    within: float = 0.0
    decides: bool = False
    serving_only: bool = False
    overlap: bool = False


QUESTIONS: tuple[Question, ...] = (
    Question("driver", conditions.driver, ("guest.driver_version",)),
    Question("CUDA", conditions.cuda, ("guest.cuda_version", "guest.software")),
    Question("NCCL", conditions.nccl, ("guest.nccl_version", "guest.software")),
    Question("torch", conditions.torch, ("guest.software",)),
    Question("kernel", conditions.kernel),
    Question("guest’s kernel command line", conditions.guest_cmdline, ("guest.kernel_cmdline",)),
    Question("host’s kernel command line", conditions.host_cmdline, ("host.kernel_cmdline",)),
    Question("frequency governor of the host", conditions.governor, ("host.cpu_governor",)),
    Question("machine type", conditions.machine, ("vm.machine", "guest.machine_type")),
    Question("hostpci of the VM", conditions.hostpci, ("vm.hostpci",)),
    Question("CPU type of the VM", conditions.vm_cpu, ("vm.cpu",)),
    Question("args of the VM", conditions.vm_args, ("vm.args",)),
    Question("GPUs", conditions.gpu_names, ("guest.gpus",), decides=True),
    Question("how many GPUs", conditions.gpu_count, ("guest.gpu_count_smi",)),
    Question("SM clock under load, MHz", conditions.sm_clock_mhz, within=0.03),
    Question("power limit, W", conditions.power_limit_w, within=0.001),
    Question("ECC", conditions.ecc),
    Question("highest temperature, °C", conditions.temperature_celsius, within=0.15),
    Question("slowed down by", conditions.throttling),
    Question("PCIe link under load", conditions.link_under_load, ("guest.pcie_links", "host.pcie_links")),
    Question("other work on the GPUs", conditions.other_work, decides=True),
    Question("NUMA nodes", conditions.numa, ("guest.numa_nodes", "vm.numa")),
    Question("program, by its hash", conditions.payload, decides=True),
    Question("arguments", conditions.arguments, decides=True),
    Question("settings of NCCL and CUDA", conditions.settings, ("guest.nccl_env",)),
    Question("how it was timed", conditions.timing, decides=True),
    Question("sizes, in bytes or requests at once", conditions.sizes, decides=True, overlap=True),
    Question("samples of a row", conditions.samples, within=0.5),
    Question("engine and its flags", conditions.engine, ("guest.engine", "user.parallelism"), serving_only=True),
    Question("client: prompts and answers", conditions.client, decides=True, serving_only=True),
)


@dataclass(frozen=True, slots=True)
class Item:
    """meant: the decision may change it."""

    title: str
    before: Value
    after: Value
    standing: Standing
    decides: bool = False
    meant: bool = False


@dataclass(frozen=True, slots=True)
class Comparability:
    """verdict, and the sentence for it. items: the ones that differ first, the unknown ones last."""

    verdict: Gate
    why: str
    items: tuple[Item, ...]

    def of(self, standing: Standing) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.standing is standing)

    @property
    def unmeant(self) -> tuple[str, ...]:
        """Titles of what changed though the decision does not change it."""
        return tuple(item.title for item in self.of(Standing.UNINTENDED))


_ORDER = (Standing.UNINTENDED, Standing.INTENDED, Standing.SAME, Standing.UNKNOWN)


def comparability(before: Side, after: Side, intended: frozenset[str]) -> Comparability:
    """intended: ids of the facts that what was carried out is meant to change."""
    questions = [q for q in QUESTIONS if before.is_serving or not q.serving_only]
    items = [_item(question, before, after, intended) for question in questions]
    items.sort(key=lambda item: _ORDER.index(item.standing))
    return Comparability(*_verdict(items), tuple(items))


def _item(question: Question, before: Side, after: Side, intended: frozenset[str]) -> Item:
    was, now = question.get(before), question.get(after)
    meant = bool(intended & set(question.facts))
    if was is None or now is None:
        standing = Standing.UNKNOWN
    elif _is_alike(was, now, question):
        standing = Standing.SAME
    else:
        standing = Standing.INTENDED if meant else Standing.UNINTENDED
    return Item(question.title, was, now, standing, question.decides, meant)


def _is_alike(was: Value, now: Value, question: Question) -> bool:
    if isinstance(was, float) and isinstance(now, float):
        return abs(was - now) <= question.within * max(abs(was), abs(now))
    if question.overlap:
        return bool(set(str(was).split(", ")) & set(str(now).split(", ")))
    return was == now


def _verdict(items: list[Item]) -> tuple[Gate, str]:
    strayed = [item for item in items if item.standing is Standing.UNINTENDED]
    broken = [item.title for item in strayed if item.decides]
    if broken:
        return Gate.NOT_COMPARABLE, f"{_joined_titles(broken)} changed, and no decision meant that"
    if strayed:
        titles = _joined_titles([item.title for item in strayed])
        return Gate.CAVEATS, f"{titles} changed too: a difference may come from that"
    unknown = sum(item.standing is Standing.UNKNOWN for item in items)
    if unknown:
        return (Gate.CAVEATS, f"{unknown} of {len(items)} circumstances were not recorded on both sides")
    return Gate.COMPARABLE, "nothing else changed of what the figures depend on"


def _joined_titles(titles: list[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"
