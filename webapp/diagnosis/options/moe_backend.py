"""Which kernels compute the experts; some fall back to slow ones on new chips.

Source: SGLang and vLLM server arguments, 2026.
"""

from webapp.diagnosis.case import Actor, Advice, Case, Restart
from webapp.diagnosis.option import Option, by_share


def judge(case: Case) -> Advice:
    return by_share(case, "MoE")


option = Option(
    __name__,
    title="Try the other MoE backends",
    phase="P1",
    actor=Actor.OPERATOR,
    downtime=Restart.ENGINE,
    rollback="put the flag back and restart the engine",
    verified_by="bench.profile: MoE time falls; outputs at temperature 0 stay the same",
    changes=("guest.engine", "guest.engine_start"),
    judge=judge,
)
