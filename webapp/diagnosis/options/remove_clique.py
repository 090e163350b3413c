"""The way back from a clique whose promise did not hold.

Source: QEMU hw/vfio/pci-quirks.c.
"""

from agents.facts.bench import ALLREDUCE, DELIVERY
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.vm import VM_CLIQUE
from webapp.diagnosis.case import Actor, Advice, Case, GateState, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because

SOURCE = "QEMU hw/vfio/pci-quirks.c"


def judge(case: Case) -> Advice:
    facts = case.facts
    if case.supported("false_p2p_grant"):
        text = "the grant is false: it hangs or corrupts data"
        refs = facts.refs(DELIVERY, ALLREDUCE) or facts.refs(P2P_READ)
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs))
    looked = case.state("granted") not in {None, GateState.UNKNOWN}
    granted = case.gate("granted") if looked else None
    where = granted.evidence if granted else ()
    if facts.value(VM_CLIQUE) or (granted and granted.state is GateState.PASS):
        text = "a clique is set; it stays as long as gates 4 to 7 hold"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, facts.refs(VM_CLIQUE) or where))
    text = "no clique was seen" if looked else "no clique was seen, and nobody looked for one"
    return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, where))


option = Option(
    __name__,
    title="Remove the GPUDirect clique",
    phase="P2",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="set the same args again, stop and start",
    verified_by="`topo -p2p` shows NS again; the engine runs over shared memory",
    changes=(
        "vm.args",
        "vm.clique",
        "vm.qemu_args",
        "guest.clique_capability",
        "guest.p2p_read",
        "guest.p2p_write",
        "guest.nccl_transports",
    ),
    p2p_after=P2pCode.NS,
    judge=judge,
    scripted=True,
)
