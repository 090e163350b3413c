"""The host's memory nodes shown to the guest, so that staging buffers lie near their GPU.

Proxmox: numa: 1 with numaN lines that name hostnodes.

Source: Proxmox VE administration guide, NUMA.
"""

from agents.facts.gpu import GPU_NUMA
from agents.facts.host import PLATFORM
from agents.facts.platform import NUMA_NODES
from agents.facts.vm import VM_NUMA
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "Proxmox VE administration guide, NUMA"


def judge(case: Case) -> Advice:
    facts = case.facts
    outside = no_vm(case)
    if outside:
        return outside
    if facts.value(VM_NUMA, where=bool):
        return advise(OptionStatus.DONE, seen("the VM has numa: 1", facts.refs(VM_NUMA), SOURCE))
    if case.supported("numa_misplacement"):
        text = "memory and GPUs lie on different nodes"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, facts.refs(NUMA_NODES, GPU_NUMA, PLATFORM)))
    if facts.value(PLATFORM, where=lambda platform: platform.sockets == 1):
        text = "the host has one socket; unless its BIOS splits it, there is one memory node"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, facts.refs(PLATFORM)))
    text = "matters on a host with more than one memory node: ask for lscpu on the host"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE))


option = Option(
    __name__,
    title="Virtual NUMA that follows the host",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="`qm set VMID --numa 0`, and delete the numaN lines; then stop and start",
    verified_by="guest.numa_nodes shows as many nodes; bench.copy per pair",
    changes=("vm.numa", "vm.qemu_args", "guest.numa_nodes", "guest.gpu_numa"),
    judge=judge,
    scripted=True,
)
