"""P4 on a Proxmox host: memory nodes that follow the host's, and pages of 1 GiB reserved at boot.

Syntax: qm.conf(5), numa[n] and hugepages; hugepagesz= and hugepages=, Linux kernel parameters. A VM with
`hugepages: 1024` does not start where the pages are not there, so the host's command line comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.host import BootLoader
from agents.facts.platform import HOST_NUMA_NODES
from webapp.diagnosis.case import Advice, OptionStatus, Restart
from webapp.diagnosis.scripts.cliques import gpu_slots
from webapp.diagnosis.scripts.model import Change, Plan, ScriptError
from webapp.diagnosis.scripts.values import checked
from webapp.diagnosis.scripts.vm_plan import vm_plan
from webapp.diagnosis.scripts.vm_state import VmState

_GO = {OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE, OptionStatus.DONE}
_AFFINITY = (
    "`affinity` is not set: which cores the VM may have to itself depends on what else the host runs. By "
    "hand: `qm set VMID --affinity 0-31`, with the cores of the GPUs' node."
)
_GOVERNOR = (
    "The frequency governor is not set. By hand, and again after a boot: `cpupower frequency-set -g performance`."
)
_RISK = (
    "The pages are taken from the host at boot, whether the VM runs or not: nothing else can use that "
    "memory. If a node has too little, the VM does not start and the old configuration is put back."
)


@dataclass(slots=True)
class _Wanted:
    new: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    gib: int | None = None


def plan(vm: VmState, advice: Mapping[str, Advice]) -> Plan:
    """Raises ScriptError where neither memory nodes nor pages can be set from what is known."""
    if not gpu_slots(vm):
        raise ScriptError(f"VM {vm.id} has no passed-through GPU, so P4 has nothing to change in it.")
    wanted = _Wanted()
    nodes = _nodes(vm, advice, wanted)
    _pages(vm, advice, nodes, wanted)
    wanted.left_out.append(_AFFINITY)
    if advice["host_governor"].status is OptionStatus.POSSIBLE:
        wanted.left_out.append(_GOVERNOR)
    if not wanted.new:
        raise ScriptError("P4 has nothing to change in this VM. " + " ".join(wanted.left_out))
    return vm_plan(
        vm,
        title="Memory nodes and pages of 1 GiB" if wanted.gib else "Memory nodes",
        changes=tuple(Change(key, vm.get(key), new) for key, new in wanted.new.items()),
        values={"hugepages_gib": str(wanted.gib)} if wanted.gib else {},
        left_out=tuple(wanted.left_out),
        downtime=Restart.HOST if wanted.gib else Restart.VM,
        risk=_RISK if wanted.gib else "The VM is down for some minutes.",
        predicted_effect=None,
    )


def _number(vm: VmState, key: str, default: int) -> int:
    return int(checked("a number", vm.get(key).removeprefix("current=") or str(default)))


def _nodes(vm: VmState, advice: Mapping[str, Advice], wanted: _Wanted) -> int:
    """Adds numaN lines; returns how many nodes the VM's memory is split over."""
    found = vm.facts.value(HOST_NUMA_NODES) or ()
    with_memory = [node for node in found if node.cpus and node.memory_mib != 0]
    if vm.get("numa0") or advice["vnuma"].status not in _GO:
        wanted.left_out.append("Memory nodes stay as they are configured.")
        return 1
    if len(with_memory) < 2:
        why = "one memory node" if found else "memory nodes that were not read (lscpu, numactl -H)"
        wanted.left_out.append(f"No memory nodes are made: the host has {why}.")
        return 1
    cores = _number(vm, "cores", 1) * _number(vm, "sockets", 1)
    memory, count = _number(vm, "memory", 512), len(with_memory)
    if vm.get("vcpus") or cores % count or memory % count:
        wanted.left_out.append(
            f"No memory nodes are made: {cores} cores and {memory} MiB do not split over {count} nodes."
        )
        return 1
    share = cores // count
    wanted.new |= {"numa": "1", "sockets": str(count), "cores": str(share)}
    for index, node in enumerate(with_memory):
        cpus = f"{index * share}-{(index + 1) * share - 1}" if share > 1 else str(index)
        line = f"cpus={cpus},hostnodes={node.id},memory={memory // count},policy=bind"
        wanted.new[f"numa{index}"] = line
    return count


def _pages(vm: VmState, advice: Mapping[str, Advice], nodes: int, wanted: _Wanted) -> None:
    memory = _number(vm, "memory", 512)
    if advice["hugepages"].status not in _GO:
        wanted.left_out.append("Huge pages would have no effect here.")
    elif vm.get("hugepages") not in {"", "1024"}:
        wanted.left_out.append(f"hugepages: {vm.get('hugepages')} is set already and stays.")
    elif memory % (1024 * nodes):
        wanted.left_out.append(f"No pages of 1 GiB: {memory} MiB are no whole number of them.")
    elif vm.loader is BootLoader.UNKNOWN:
        wanted.left_out.append(
            "No pages of 1 GiB: which boot loader starts the host was not read, so it is not known which "
            f"file takes `hugepagesz=1G hugepages={memory // 1024}`: /etc/kernel/cmdline and "
            "`proxmox-boot-tool refresh` with systemd-boot, /etc/default/grub and `update-grub` with GRUB."
        )
    else:
        wanted.new |= {"numa": "1", "hugepages": "1024"}
        wanted.gib = memory // 1024
