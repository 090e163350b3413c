"""The host's kernel command line: the running one, or the one configured in GRUB.

/proc/cmdline looks the same on guest and host. A line of /etc/default/grub or /etc/kernel/cmdline is a configuration;
the running kernel may have another one.
"""

import re
from dataclasses import replace

from agents.facts import Reading
from agents.facts.host import HOST_CMDLINE
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest import kernel_cmdline as running

_GRUB = re.compile(r"^\s*GRUB_CMDLINE_LINUX(?:_DEFAULT)?=(.*)$")


def parse(output: Output) -> Readings:
    configured = _configured_cmdline(output)
    if configured is not None:
        return (configured,)
    return (replace(running.parse(output)[0], fact_id=HOST_CMDLINE.id),)


def _configured_cmdline(output: Output) -> Reading[str] | None:
    values = [(n, m[1]) for n, line in enumerate(output.lines, 1) if (m := _GRUB.match(line[:4096]))]
    options = [(number, value.strip().strip("\"'").strip()) for number, value in values]
    text = " ".join(value for _, value in options if value)
    if not text:
        return None
    lines = tuple(number for number, value in options if value)
    missing = ("whether the running kernel was started with it: this is GRUB's configuration",)
    return HOST_CMDLINE.known(text, lines=lines, missing=missing)


probe = Probe(
    __name__,
    title="Host kernel command line",
    commands=(Command("cat /proc/cmdline"),),
    supplies=(HOST_CMDLINE,),
    parse=parse,
    signature=Signature(
        typed=r"/proc/cmdline",
        starts=(r"^BOOT_IMAGE=\S", r"^initrd=\S.* root=", r"^root=\S+ r[ow]\b", r"^\s*GRUB_CMDLINE_LINUX"),
        belongs=r"^\s*GRUB_",
        any_machine=True,
    ),
)
