"""How far apart NCCL lets two GPUs be for P2P.

The default is PXB; on AMD with at most two GPUs SYS.

Source: NCCL 2.30, src/graph.
"""

from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypotheses.nccl_level_too_low import REACHES_FAR
from webapp.diagnosis.option import Option, advise, because, p2p_effect

_KEEPS_OFF = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
SOURCE = "NCCL 2.30: checked once, when a communicator is made"


def judge(case: Case) -> Advice:
    facts = case.facts
    level = (facts.value(NCCL_ENV) or {}).get("NCCL_P2P_LEVEL")
    if level is not None and level.upper() in REACHES_FAR:
        text = f"NCCL_P2P_LEVEL={level} is set; it costs nothing, and is needed once P2P is allowed"
        return advise(OptionStatus.DONE, because(text, SOURCE, facts.refs(NCCL_ENV)))
    if case.supported("nccl_level_too_low"):
        text = f"the driver allows P2P and NCCL does not use it: {_why(facts)}"
        refs = facts.refs(P2P_READ, NCCL_TRANSPORTS)
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs), effect=p2p_effect(case))
    driver = case.failed("driver")
    if driver:
        text = "no effect while the driver refuses P2P; it costs nothing, and is needed afterwards"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, driver.evidence))
    text = "needed for more than two GPUs at PHB distance, once the driver allows P2P"
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE))


def _why(facts: Facts) -> str:
    variables = facts.value(NCCL_ENV) or {}
    named = [f"{name}={variables[name]}" for name in _KEEPS_OFF if name in variables]
    return f"{', '.join(named)} is set" if named else "the default level stops at PXB"


option = Option(
    __name__,
    title="NCCL_P2P_LEVEL=PHB (or SYS)",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="unset `NCCL_P2P_LEVEL` and restart the engine",
    verified_by="guest.nccl_transports: the log shows P2P",
    changes=("guest.nccl_env", "guest.nccl_transports"),
    judge=judge,
    scripted=True,
)
