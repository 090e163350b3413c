"""Which wrong beliefs a case shows: in the operator's words, in settings, in what was taken as a sign."""

import re
from collections.abc import Callable
from functools import partial

from agents.facts import ReadingKind
from agents.facts.host import HOST_CMDLINE
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import KERNEL_CMDLINE
from agents.facts.vm import VM_ID, VMS
from agents.facts.workload import NOTES, OBSERVED
from webapp.diagnosis.case import Correction
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.reference.beliefs import BELIEFS, Belief
from webapp.diagnosis.situation import Situation


def find(situation: Situation) -> tuple[Correction, ...]:
    """In the order of the beliefs; each once."""
    every = (_correction(belief, situation.scope()) for belief in BELIEFS)
    return tuple(correction for correction in every if correction)


def _correction(belief: Belief, situation: Situation) -> Correction | None:
    if _stated(belief, situation.facts) or situation.exception(_ACTED_ON.get(belief.id, _never)):
        return Correction(belief.belief, belief.correct, belief.source, situation.facts.reads)
    return None


def _stated(belief: Belief, facts: Facts) -> bool:
    """By the first text that holds a pattern of the belief; what does not hold it counts for nothing."""
    places: tuple[tuple[str, Callable[[Facts], str]], ...] = (
        (belief.notes, _notes),
        (belief.host_cmdline, _host_cmdline),
        (belief.guest_cmdline, _guest_cmdline),
        (belief.vm, _configuration),
        (belief.nccl, _variables),
    )
    return any(pattern and facts.exception(partial(_holds, pattern, text)) for pattern, text in places)


def _holds(pattern: str, text: Callable[[Facts], str], facts: Facts) -> bool:
    return re.search(pattern, facts.derived(text), re.IGNORECASE | re.MULTILINE) is not None


def _notes(facts: Facts) -> str:
    return facts.value(NOTES) or ""


def _host_cmdline(facts: Facts) -> str:
    return facts.value(HOST_CMDLINE) or ""


def _guest_cmdline(facts: Facts) -> str:
    return facts.value(KERNEL_CMDLINE) or ""


def _variables(facts: Facts) -> str:
    variables = facts.value(NCCL_ENV) or {}
    return "\n".join(f"{name}={value}" for name, value in sorted(variables.items()))


def _configuration(facts: Facts) -> str:
    """The VM's newest configuration as "key: value" lines; every VM's until one is chosen."""
    chosen, known = facts.value(VM_ID), []
    for item in facts.all(VMS):
        if item.reading.kind is ReadingKind.KNOWN:
            known += [vm for vm in item.reading.value or () if chosen in {None, vm.id}]
    newest = {vm.id: vm for vm in reversed(known) if vm.config}
    return "\n".join(f"{key}: {value}" for vm in newest.values() for key, value in vm.config.items())


def _pix_in_a_guest(situation: Situation) -> bool:
    topology = situation.facts.value(TOPOLOGY)
    links = set(topology.gpu_links().values()) if topology else set()
    return situation.in_kvm and bool(links & {"PIX", "PXB"})


def _numa_not_available(situation: Situation) -> bool:
    topology = situation.facts.value(TOPOLOGY)
    nodes = topology.numa_affinity[: len(topology.gpus)] if topology else ()
    return situation.in_kvm and bool(nodes) and set(nodes) == {None}


def _total_given(situation: Situation) -> bool:
    return any(row.total_tokens_per_s for row in situation.facts.value(OBSERVED) or ())


def _never(situation: Situation) -> bool:
    return False


_ACTED_ON: dict[str, Callable[[Situation], bool]] = {
    "pix_in_a_guest": _pix_in_a_guest,
    "numa_not_available": _numa_not_available,
    "total_is_speed": _total_given,
}
