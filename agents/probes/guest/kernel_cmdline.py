"""The running kernel's command line: /proc/cmdline, or the line in which the kernel log repeats it."""

from __future__ import annotations

import re

from agents.facts.platform import KERNEL_CMDLINE
from agents.probe import Command, Output, Probe, Readings, Signature

_LOGGED = re.compile(r"(?:Kernel command line|Command line): (\S.*)$")
_OPTION = re.compile(r"^[A-Za-z][\w.-]*=\S|^(?:quiet|ro|rw|splash|nomodeset|nosmt|debug)$")


def parse(output: Output) -> Readings:
    for number, raw in enumerate(output.lines, 1):
        line = raw[:8192].strip()
        logged = _LOGGED.search(line)
        text = logged[1] if logged else line
        words = [word.rstrip(",") for word in text.split()]
        options = sum(bool(_OPTION.match(word)) for word in words)
        # Any line of a log may hold a word like "pid=1"; a command line is made of them.
        if options > (0 if logged else len(words) / 2):
            return (KERNEL_CMDLINE.known(text, lines=(number,)),)
    if output.tool_missing:
        return (KERNEL_CMDLINE.unsupported("no /proc/cmdline"),)
    if output.refused:
        return (KERNEL_CMDLINE.not_run("reading /proc/cmdline was refused"),)
    if not output.stdout.strip():
        return (KERNEL_CMDLINE.not_run("no output"),)
    return (KERNEL_CMDLINE.unreadable("no kernel option in the output"),)


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
