"""The same machine once without its VM, from a live medium: can the hardware do P2P at all?

Decides the ladder's first gate; nothing is installed and the VM's disk is not touched.

Source: CUDA samples p2pBandwidthLatencyTest, with values read back by the destination.
"""

from agents.facts.host import PLATFORM
from webapp.diagnosis.case import Actor, Advice, Case, GateState, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "CUDA samples p2pBandwidthLatencyTest, with values read back by the destination"


def judge(case: Case) -> Advice:
    fabric, outside = case.gate("fabric"), no_vm(case)
    if fabric and fabric.state in {GateState.PASS, GateState.FAIL}:
        return advise(OptionStatus.DONE, seen(fabric.why, fabric.evidence, SOURCE))
    if outside:
        return outside
    text = "shows whether this board carries P2P, without relying on reports of the same platform"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE, case.facts.refs(PLATFORM)))


option = Option(
    __name__,
    title="Boot once from a live medium: topo -p2p and one verified copy",
    phase="P5",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="none: the host is out of service meanwhile",
    rollback="boot the hypervisor again",
    verified_by="gate fabric: bytes checked by the GPU that received them",
    changes=(
        "guest.virt_kind",
        "guest.machine_type",
        "guest.kernel_cmdline",
        "guest.p2p_read",
        "guest.p2p_write",
        "guest.topology",
        "guest.worst_link",
        "guest.numa_nodes",
        "guest.gpu_numa",
    ),
    judge=judge,
)
