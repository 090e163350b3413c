"""The safe switch after a false grant, and the control arm of every comparison.

Source: NCCL 2.30 environment variables.
"""

from agents.facts.bench import ALLREDUCE, DELIVERY
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because

SOURCE = "NCCL 2.30 environment variables"


def judge(case: Case) -> Advice:
    facts = case.facts
    if case.supported("false_p2p_grant"):
        text = "P2P is granted and does not deliver: switch it off now, until the grant is removed"
        refs = facts.refs(DELIVERY, ALLREDUCE) or facts.refs(P2P_READ)
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs))
    driver = case.failed("driver")
    if driver:
        text = "the driver refuses P2P already, so NCCL uses none"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, driver.evidence))
    text = "the control arm: at high concurrency P2P can be slower than shared memory"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE))


option = Option(
    __name__,
    title="NCCL_P2P_DISABLE=1",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="unset `NCCL_P2P_DISABLE` and restart the engine",
    verified_by="guest.nccl_transports: the log shows SHM",
    changes=("guest.nccl_env", "guest.nccl_transports"),
    judge=judge,
    scripted=True,
)
