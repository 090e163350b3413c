"""Which wrong beliefs a case shows: in the operator's words, in settings, in what was taken as a sign."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agents.facts import ReadingKind
from agents.facts.host import HOST_CMDLINE
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import TOPOLOGY
from agents.facts.platform import KERNEL_CMDLINE
from agents.facts.vm import VM_ID, VMS
from agents.facts.workload import NOTES, OBSERVED
from webapp.diagnosis.case import Correction
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.ground import Ground, ground
from webapp.diagnosis.reference.beliefs import BELIEFS, Belief


def find(facts: Facts) -> tuple[Correction, ...]:
    """In the order of the beliefs; each once."""
    texts = _texts(facts)
    return tuple(
        Correction(belief.belief, belief.correct, belief.source)
        for belief in BELIEFS
        if _said(belief, texts) or _SEEN.get(belief.id, _never)(facts)
    )


def _said(belief: Belief, texts: Mapping[str, str]) -> bool:
    patterns = {
        "notes": belief.notes,
        "host_cmdline": belief.host_cmdline,
        "guest_cmdline": belief.guest_cmdline,
        "vm": belief.vm,
        "nccl": belief.nccl,
    }
    return any(
        pattern and re.search(pattern, texts[place], re.IGNORECASE | re.MULTILINE)
        for place, pattern in patterns.items()
    )


def _texts(facts: Facts) -> dict[str, str]:
    variables = facts.value(NCCL_ENV) or {}
    return {
        "notes": facts.value(NOTES) or "",
        "host_cmdline": facts.value(HOST_CMDLINE) or "",
        "guest_cmdline": facts.value(KERNEL_CMDLINE) or "",
        "vm": _configuration(facts),
        "nccl": "\n".join(f"{name}={value}" for name, value in sorted(variables.items())),
    }


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
