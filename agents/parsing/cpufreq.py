"""The frequency governor of each CPU: from the kernel's files as grep and cat print them, or from cpupower.

grep prints ".../cpu0/cpufreq/scaling_governor:powersave", cat the word alone, once a CPU, and `uniq -c`
counts those (Linux, admin-guide/pm/cpufreq). cpupower-frequency-info(1) prints "analyzing CPU 0:",
"  driver: intel_pstate" and, below, 'The governor "powersave" may decide which speed to use'.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from agents.facts.host import CpuGovernor
from agents.parsing.nonblank_lines import nonblank_lines

# The kernel's own governors (drivers/cpufreq, kernel/sched); half a word at a cut does not match.
GOVERNORS = "performance|powersave|schedutil|ondemand|conservative|userspace"
_LINE = re.compile(
    r"\s*(?:(?:/sys/devices/system/cpu/)?"
    rf"cpu(?P<cpu>\d{{1,5}})/cpufreq/scaling_(?:governor:(?P<set>{GOVERNORS})|driver:(?P<by>[\w-]{{1,40}}))"
    r"|analyzing CPU (?P<analyzed>\d{1,5}):"
    r"|driver: (?P<driver>[\w-]{1,40})"
    rf'|The governor "(?P<decides>{GOVERNORS})" may decide which speed to use'
    rf"|(?:(?P<times>[1-9]\d{{0,4}}) )?(?P<word>{GOVERNORS}))\s*$"
)
_LINE_CAP = 400
_MOST = 3 * 8192  # lines; Linux runs on 8192 CPUs at most (NR_CPUS of x86)
_ONLINE = re.compile(r"(?m)^\s*/sys/devices/system/cpu/online:([\d,-]{1,4000})\s*$")
_SPAN = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line. cpu None: a driver, which all CPUs share, or a governor without a CPU number. times: CPUs."""

    line: int
    is_driver: bool
    value: str
    cpu: int | None = None
    times: int = 1


def parse(text: str) -> tuple[CpuGovernor, tuple[int, ...], tuple[str, ...]] | None:
    """The governors, the 1-based lines that first name each and the driver, and what is missing; None when
    there is no governor, or more of them than a machine has CPUs."""
    entries = list(islice(_entries(text), _MOST + 1))
    governors = [entry for entry in entries if not entry.is_driver]
    if not governors or len(entries) > _MOST:
        return None
    by_cpu = {entry.cpu: entry.value for entry in governors if entry.cpu is not None}
    counts = Counter(by_cpu.values())
    for entry in governors:
        if entry.cpu is None:
            counts[entry.value] += entry.times
    drivers = {entry.value for entry in entries if entry.is_driver}
    governor = CpuGovernor(dict(sorted(counts.items())), drivers.pop() if len(drivers) == 1 else None)
    lines = {entry.value: entry.line for entry in reversed(entries)}
    missing = _missing(counts.total(), _online_cpus(text), highest=max(by_cpu, default=-1))
    return governor, tuple(sorted(lines.values())), missing


def _entries(text: str) -> Iterator[_Entry]:
    cpu = None
    for number, raw in nonblank_lines(text):
        match = _LINE.match(raw[:_LINE_CAP])
        if match is None:
            continue
        if match["analyzed"]:
            cpu = int(match["analyzed"])
        elif driver := match["by"] or match["driver"]:
            yield _Entry(number, True, driver)
        elif match["set"]:
            yield _Entry(number, False, match["set"], int(match["cpu"]))
        elif match["decides"]:
            yield _Entry(number, False, match["decides"], cpu)
        else:
            yield _Entry(number, False, match["word"], None, int(match["times"] or 1))


def _online_cpus(text: str) -> int:
    """How many CPUs are online; 0 where the text does not show it."""
    listed = _ONLINE.search(text)
    spans = _SPAN.findall(listed[1]) if listed else []
    return sum(max(0, int(last or first) - int(first) + 1) for first, last in spans)


def _missing(seen: int, online: int, highest: int) -> tuple[str, ...]:
    """The missing CPUs. Where the text does not give their number: one CPU alone, or fewer than the highest number,
    is not all."""
    if online:
        return (f"{online - seen} of {online} CPUs",) if seen < online else ()
    return ("the other CPUs",) if seen <= max(highest, 1) else ()
