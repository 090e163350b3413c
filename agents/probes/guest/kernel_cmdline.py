"""The running kernel's command line: /proc/cmdline, or the line in which the kernel log repeats it."""

import re
from itertools import islice

from agents.facts.platform import KERNEL_CMDLINE
from agents.parsing.lines_with import lines_with
from agents.probe import Command, Output, Probe, Readings, Signature

_LOGGED = re.compile(r"(?:Kernel command line|Command line): (\S.*)$")
_OPTION = re.compile(r"^[A-Za-z][\w.-]*=\S|^(?:quiet|ro|rw|splash|nomodeset|nosmt|debug)$")


_MOST_LINES = 100


def parse(output: Output) -> Readings:
    for number, raw in lines_with(output.stdout, ("ommand line: ",)):
        logged = _LOGGED.search(raw[:8192].strip())
        if logged and _option_share(logged[1]) > 0:
            return (KERNEL_CMDLINE.known(logged[1], lines=(number,)),)
    # Any line of a log may hold a word like "pid=1"; a command line consists of such words and appears early.
    for number, raw in enumerate(islice(output.lines, _MOST_LINES), 1):
        line = raw[:8192].strip()
        if _option_share(line) > 0.5:
            return (KERNEL_CMDLINE.known(line, lines=(number,)),)
    if output.tool_missing:
        return (KERNEL_CMDLINE.unsupported("no /proc/cmdline"),)
    if output.refused:
        return (KERNEL_CMDLINE.not_run("reading /proc/cmdline was refused"),)
    if not output.stdout.strip():
        return (KERNEL_CMDLINE.not_run("no output"),)
    return (KERNEL_CMDLINE.unreadable("no kernel option in the output"),)


def _option_share(line: str) -> float:
    """The share of the line's words that are kernel options. What follows a bare "--" is for init
    (https://docs.kernel.org/admin-guide/kernel-parameters.html)."""
    words = [word.rstrip(",") for word in line.partition(" -- ")[0].split()]
    return sum(bool(_OPTION.match(word)) for word in words) / len(words) if words else 0.0


probe = Probe(
    __name__,
    title="Kernel command line",
    commands=(Command("cat /proc/cmdline"),),
    supplies=(KERNEL_CMDLINE,),
    parse=parse,
    signature=Signature(
        typed=r"/proc/cmdline",
        starts=(r"^BOOT_IMAGE=\S", r"^initrd=\S.* root=", r"^root=\S+ r[ow]\b"),
        belongs=r"(?!)",
        any_machine=True,
    ),
)
