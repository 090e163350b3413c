"""The service that sets up NVSwitch; without it NVLink P2P is refused.

Source: NVIDIA Fabric Manager user guide.
"""

from agents.facts.gpu import FABRIC
from agents.facts.p2p import TOPOLOGY, P2pCode
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "NVIDIA Fabric Manager user guide"


def judge(case: Case) -> Advice:
    facts = case.facts
    if case.supported("nvlink_fabric_down"):
        text = "the NVSwitch fabric is not set up: fabric manager (or IMEX) comes first"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, facts.refs(FABRIC)))
    if facts.value(FABRIC, where=lambda fabric: fabric.state.lower() == "completed"):
        return advise(OptionStatus.DONE, seen("the fabric’s state is Completed", facts.refs(FABRIC), SOURCE))
    if facts.value(TOPOLOGY) and not case.situation.has_nvlink:
        text = "no pair is joined by NVLink: there is no fabric to manage"
        return advise(OptionStatus.NO_EFFECT, seen(text, facts.refs(TOPOLOGY), SOURCE))
    return advise(OptionStatus.POSSIBLE, because("only for machines with NVSwitch", SOURCE))


option = Option(
    __name__,
    title="Start or repair the fabric manager",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="stop the service",
    verified_by="`nvidia-smi -q` shows the fabric’s State Completed and Status Success",
    changes=("guest.fabric", "guest.p2p_read", "guest.p2p_write", "guest.p2p_nvlink", "guest.nccl_transports"),
    p2p_after=P2pCode.OK,
    judge=judge,
)
