"""P4 on a Proxmox host: memory nodes of the VM that follow the host's.

Syntax: qm.conf(5), numa[n]. What the phase asks of the host itself is in host_instructions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.platform import HOST_NUMA_NODES
from webapp.diagnosis.case import Advice, OptionStatus, Restart
from webapp.diagnosis.scripts.cliques import gpu_slots
from webapp.diagnosis.scripts.model import Change, Plan, ScriptError
from webapp.diagnosis.scripts.values import checked
from webapp.diagnosis.scripts.vm_plan import vm_plan
from webapp.diagnosis.scripts.vm_state import VmState

_GO = {OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE, OptionStatus.DONE}
_BY_HAND = (
    "Huge pages, CPU affinity and the frequency governor are set by hand: the plan says how. No script edits a "
    "host’s boot files or reserves its memory."
)


@dataclass(slots=True)
class _Draft:
    new: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def plan(vm: VmState, advice: Mapping[str, Advice]) -> Plan:
    """Raises ScriptError where no memory nodes can be made from what is known."""
    if not gpu_slots(vm):
        raise ScriptError(f"VM {vm.id} has no passed-through GPU, so P4 has nothing to change in it.")
    draft = _Draft()
    _draft_numa_nodes(vm, advice, draft)
    draft.left_out.append(_BY_HAND)
    if not draft.new:
        raise ScriptError("P4 has nothing to change in this VM. " + " ".join(draft.left_out))
    return vm_plan(
        vm,
        title="Memory nodes",
        changes=tuple(Change(key, vm.get(key), new) for key, new in draft.new.items()),
        values={},
        left_out=tuple(draft.left_out),
        downtime=Restart.VM,
        risk="The VM is down for some minutes.",
        predicted_effect=None,
    )


def _number(vm: VmState, key: str, default: int) -> int:
    return int(checked("a number", vm.get(key).removeprefix("current=") or str(default)))


def _draft_numa_nodes(vm: VmState, advice: Mapping[str, Advice], draft: _Draft) -> None:
    """Adds numaN lines, one for each of the host's nodes that has memory."""
    nodes = vm.facts.value(HOST_NUMA_NODES) or ()
    with_memory = [node for node in nodes if node.cpus and node.memory_mib != 0]
    if vm.get("numa0") or advice["vnuma"].status not in _GO:
        draft.left_out.append("Memory nodes stay as they are configured.")
        return
    if len(with_memory) < 2:
        why = "one memory node" if nodes else "memory nodes that were not read (lscpu, numactl -H)"
        draft.left_out.append(f"No memory nodes are made: the host has {why}.")
        return
    cores = _number(vm, "cores", 1) * _number(vm, "sockets", 1)
    memory, count = _number(vm, "memory", 512), len(with_memory)
    if vm.get("vcpus") or cores % count or memory % count:
        draft.left_out.append(
            f"No memory nodes are made: {cores} cores and {memory} MiB do not split over {count} nodes."
        )
        return
    share = cores // count
    draft.new |= {"numa": "1", "sockets": str(count), "cores": str(share)}
    for index, node in enumerate(with_memory):
        cpus = f"{index * share}-{(index + 1) * share - 1}" if share > 1 else str(index)
        line = f"cpus={cpus},hostnodes={node.id},memory={memory // count},policy=bind"
        draft.new[f"numa{index}"] = line
