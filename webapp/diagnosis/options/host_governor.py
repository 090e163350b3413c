"""The frequency governor of the host's processor: launch latency follows it.

Source: Linux kernel documentation, cpufreq.
"""

from __future__ import annotations

from webapp.diagnosis.advising import advise, because
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option


def judge(case: Case) -> Advice:
    text = "kernel launches wait for the processor; measurable at batch 1 if launches are the limit"
    return advise(OptionStatus.POSSIBLE, because(text, "Linux cpufreq documentation"))


option = Option(
    __name__,
    title="Performance governor on the host",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.NONE,
    isolation_cost="none",
    rollback="set the old governor",
    verified_by="bench.launch before and after",
    changes=("host.kernel_cmdline",),
    judge=judge,
)
