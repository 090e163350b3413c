"""The engine on the machine itself, without a hypervisor.

Source: public P2P measurements of RTX PRO 6000 and data-centre GPUs without a VM, 2025 to 2026.
"""

from agents.facts.gpu import GPUS
from agents.facts.workload import MAY_CHANGE
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, p2p_effect, seen
from webapp.diagnosis.situation.platform import Platform
from webapp.diagnosis.wording import answer_words

SOURCE = "public P2P measurements of RTX PRO 6000 and data-centre GPUs without a VM, 2025 to 2026"


def judge(case: Case) -> Advice:
    facts = case.facts
    if case.situation.outside_kvm is Platform.BARE_METAL:
        return advise(OptionStatus.DONE, seen("there is no VM", case.situation.platform_refs, SOURCE))
    text = (
        "no clique is needed without a VM; what P2P can gain stays within the bound, and staged copies are "
        "as fast in a VM as without"
    )
    claims = [because(text, SOURCE, facts.refs(GPUS))]
    allowed = facts.value(MAY_CHANGE)
    if allowed and "bare metal" not in allowed:
        claims.append(seen(f"the operator may change: {answer_words(*allowed)}", facts.refs(MAY_CHANGE), ""))
    return advise(OptionStatus.POSSIBLE, *claims, effect=p2p_effect(case))


option = Option(
    __name__,
    title="Serve without a VM",
    phase="P5",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="the engine and its users get the whole machine",
    rollback="boot the hypervisor and start the VM again",
    verified_by="the whole ladder, then an A/B of the workload",
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
        "guest.nccl_transports",
    ),
    judge=judge,
)
