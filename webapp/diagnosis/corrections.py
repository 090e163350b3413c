"""Which wrong beliefs a case shows: in the operator's words, in settings, in what was taken as a sign."""

from __future__ import annotations

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
from webapp.diagnosis.situation.platform import Ground, ground


def find(facts: Facts) -> tuple[Correction, ...]:
    """In the order of the beliefs; each once."""
    found = (_correction(belief, facts.scope()) for belief in BELIEFS)
    return tuple(correction for correction in found if correction)


def _correction(belief: Belief, facts: Facts) -> Correction | None:
    if _said(belief, facts) or facts.exception(_SEEN.get(belief.id, _never)):
        return Correction(belief.belief, belief.correct, belief.source, facts.reads)
    return None


def _said(belief: Belief, facts: Facts) -> bool:
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


def _pix_in_a_guest(facts: Facts) -> bool:
    topology = facts.value(TOPOLOGY)
    links = set(topology.gpu_links().values()) if topology else set()
    return ground(facts) is Ground.KVM and bool(links & {"PIX", "PXB"})


def _numa_not_available(facts: Facts) -> bool:
    topology = facts.value(TOPOLOGY)
    nodes = topology.numa_affinity[: len(topology.gpus)] if topology else ()
    return ground(facts) is Ground.KVM and bool(nodes) and set(nodes) == {None}


def _total_given(facts: Facts) -> bool:
    return any(row.total_tokens_per_s for row in facts.value(OBSERVED) or ())


def _never(facts: Facts) -> bool:
    return False


_SEEN: dict[str, Callable[[Facts], bool]] = {
    "pix_in_a_guest": _pix_in_a_guest,
    "numa_not_available": _numa_not_available,
    "total_is_speed": _total_given,
}
