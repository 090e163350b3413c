"""The frequency governor of the host's CPUs, and its scaling driver: launches wait for the CPU.

/sys/devices/system/cpu/cpuN/cpufreq (Linux, admin-guide/pm/cpufreq); cpupower-frequency-info(1). Without that folder
no scaling driver is loaded: Linux cannot set the clock, and the output does not show what sets it.
"""

import re

from agents.facts import Reading
from agents.facts.host import CPU_GOVERNOR, CpuGovernor
from agents.parsing import cpufreq
from agents.probe import Command, Output, Probe, Readings, Signature

# scaling_driver and scaling_governor, each line with its file's name.
_SH = "grep -H . /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_[dg]*"
_NO_SYSFS = "/sys/devices/system/cpu/online: No such file"
_NONE = re.compile(
    r"/cpufreq/scaling_[^\s:]{1,20}: No such file or directory"
    r"|no or unknown cpufreq driver is active on this CPU"
)


def parse(output: Output) -> Readings:
    answer = cpufreq.parse(output.stdout)
    if answer is None:
        return (_no_reading(output),)
    governor, lines, missing = answer
    missing += ("the end of the output",) if output.truncated else ()
    return (CPU_GOVERNOR.known(governor, lines=lines, missing=missing),)


def _no_reading(output: Output) -> Reading[CpuGovernor]:
    text = f"{output.stdout}\n{output.stderr}"
    if output.refused:
        return CPU_GOVERNOR.not_run("reading the governors was refused")
    if _NONE.search(text) and _NO_SYSFS not in text:
        return CPU_GOVERNOR.absent("the kernel scales no frequency: its CPUs have no cpufreq folder")
    if output.tool_missing:
        return CPU_GOVERNOR.unsupported("neither grep nor cpupower")
    return CPU_GOVERNOR.unreadable("no list of the CPUs and their governors in the output")


probe = Probe(
    __name__,
    title="Frequency governor of the host",
    commands=(Command(_SH),),
    supplies=(CPU_GOVERNOR,),
    parse=parse,
    signature=Signature(
        typed=(
            r"^(?!.*\b(?:tee|echo)\b)"
            r".*(?:scaling_(?:governor|\[dg\])|\bcpupower\b.*\bfrequency-info|\bcpufreq-info)"
        ),
        starts=(
            r"^/sys/devices/system/cpu/(?:online|cpu\d+/cpufreq/scaling_(?:driver|governor)):",
            r"^analyzing CPU \d+:",
        ),
        belongs=(
            r"^/sys/devices/system/cpu/|^analyzing CPU \d|^\s+\S"
            rf"|^(?:{cpufreq.GOVERNORS})$"
        ),
        any_machine=True,
    ),
)
