"""The frequency governor of the host's processor: launch latency follows it.

Source: Linux kernel documentation, admin-guide/pm: cpufreq, intel_pstate and amd-pstate.
"""

from agents.facts import Reading, ReadingKind
from agents.facts.host import CPU_GOVERNOR, CpuGovernor
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "Linux cpufreq documentation"
_LAUNCHES = "kernel launches wait for the processor, which shows at batch 1 if launches are the limit"
_NONE = (
    "the host’s CPUs have no cpufreq folder: no scaling driver is loaded, so there is no governor to set. "
    "The kernel leaves the clock to the firmware, and how that is set up was not read"
)
FOLLOW_THE_LOAD = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})
"""Drivers under which powersave is not the lowest clock, as the kernel's own governor of that name would have
it: intel_pstate and amd-pstate, “Active Mode”. The name with underscores is that of Linux 6.3."""


def judge(case: Case) -> Advice:
    best, refs = case.facts.best(CPU_GOVERNOR), case.facts.refs(CPU_GOVERNOR)
    if best and best.reading.kind is ReadingKind.ABSENT:
        return advise(OptionStatus.BLOCKED, because(_NONE, SOURCE, refs))
    if best is None or best.reading.value is None:
        return advise(OptionStatus.POSSIBLE, because(f"the host’s governor was not read; {_LAUNCHES}", SOURCE))
    governor: CpuGovernor = best.reading.value
    claims = [seen(_governor_text(best.reading, governor), refs, SOURCE)]
    if best.reading.complete and set(governor.governors) == {"performance"}:
        return advise(OptionStatus.DONE, *claims)
    if governor.driver in FOLLOW_THE_LOAD and "powersave" in governor.governors:
        text = f"under {governor.driver} powersave raises the clock with the load, too: the gain may be nothing"
        claims.append(because(text, "Linux documentation of intel_pstate and amd-pstate", refs))
    return advise(OptionStatus.POSSIBLE, *claims, because(_LAUNCHES, SOURCE))


def _governor_text(reading: Reading[CpuGovernor], governor: CpuGovernor) -> str:
    """ "the host’s governor is performance on 48, schedutil on 16 of 64 CPUs; the driver is acpi-cpufreq"."""
    listed = ", ".join(f"{name} on {count}" for name, count in governor.governors.items())
    total = sum(governor.governors.values())
    cpus = f" of {total}" if reading.complete else ""
    text = f"the host’s governor is {listed}{cpus} {'CPU' if total == 1 else 'CPUs'}"
    text += f"; not read: {', '.join(reading.missing)}" if reading.missing else ""
    return f"{text}; the driver is {governor.driver}" if governor.driver else text


option = Option(
    __name__,
    title="Performance governor on the host",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.NONE,
    rollback="set the old governor",
    verified_by="host.cpu_governor shows it on every CPU; bench.launch before and after",
    changes=("host.cpu_governor",),
    judge=judge,
    by_hand="On the host, as root: note `cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor`, then "
    "`cpupower frequency-set -g performance`. It lasts until the next boot.",
)
