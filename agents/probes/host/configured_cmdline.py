"""Kernel options for the host's next boot, in their two possible files.

/etc/default/grub (GRUB_CMDLINE_LINUX, …_DEFAULT) and /etc/kernel/cmdline (proxmox-boot-tool(8)). Only one of them
counts; host.boot_loader shows which. host.kernel_cmdline reads the running one.
"""

import re

from agents.facts import Reading
from agents.facts.host import CONFIGURED_CMDLINE, HOST_CMDLINE, ConfiguredCmdline
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = """[ -r /etc/default/grub ] && echo '### /etc/default/grub' &&
  cat /etc/default/grub /etc/default/grub.d/*.cfg 2>/dev/null | grep -E '^GRUB_CMDLINE_LINUX'
[ -r /etc/kernel/cmdline ] && echo '### /etc/kernel/cmdline' && cat /etc/kernel/cmdline
echo '### end'"""
_GRUB = re.compile(r"^[\s>|]*(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=(?P<value>\"[^\"]*\"?|'[^']*'?|\S*)")
_OPTION = re.compile(r"^(?:root|quiet|ro|rw|splash|[\w.-]+=\S*)$")


def parse(output: Output) -> Readings:
    grub, kernel, lines = _read_files(output.lines)
    if grub is not None or kernel is not None:
        cmdline = ConfiguredCmdline(grub, kernel)
        return (
            CONFIGURED_CMDLINE.known(cmdline, lines=lines),
            _running_cmdline(cmdline, lines, output.alternative < 0),
        )
    if bare := _bare_options(output.lines):
        number, text = bare
        missing = ("whether it runs or is configured: the line stands alone",)
        only = CONFIGURED_CMDLINE.not_run("the line does not say which file it is from")
        return (only, HOST_CMDLINE.known(text, lines=(number,), missing=missing))
    return (_no_reading(output), HOST_CMDLINE.not_run("host.kernel_cmdline reads the running one"))


def _read_files(rows: list[str]) -> tuple[str | None, str | None, tuple[int, ...]]:
    """GRUB's two variables, joined as grub-mkconfig joins them, and the other file's single line."""
    options: dict[str, str] = {}
    kernel: str | None = None
    lines: list[int] = []
    inside = False
    for number, raw in enumerate(rows, 1):
        line = raw[:8192].rstrip()
        grub = _GRUB.match(line)
        if grub:
            options[grub["name"]] = grub["value"].strip("\"'").strip()
            lines.append(number)
        elif "/etc/kernel/cmdline" in line:
            inside = True
        elif inside and kernel is None and _is_options(line):
            kernel = line.strip()
            lines.append(number)
    order = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
    joined = " ".join(options[name] for name in order if options.get(name))
    return (joined if options else None), kernel, tuple(lines)


def _bare_options(rows: list[str]) -> tuple[int, str] | None:
    """A line of options alone, at least one about the IOMMU, as people write them down."""
    for number, raw in enumerate(rows, 1):
        text = raw[:8192].strip().lstrip("> ").replace(", ", " ")
        if re.search(r"(?:^|\s)(?:(?:amd_|intel_)?iommu|pcie_acs_override)=\S", text) and _is_options(text):
            return number, text
    return None


def _is_options(line: str) -> bool:
    words = line.split()
    return bool(words) and all(_OPTION.match(word) for word in words)


def _running_cmdline(cmdline: ConfiguredCmdline, lines: tuple[int, ...], pasted: bool) -> Reading[str]:
    """A configuration does not prove the running command line; pasted alone it is the best evidence."""
    text = cmdline.kernel_cmdline or cmdline.grub
    if pasted and text and not (cmdline.grub and cmdline.kernel_cmdline):
        missing = ("whether the running kernel was started with it: this is configuration",)
        return HOST_CMDLINE.known(text, lines=lines, missing=missing)
    return HOST_CMDLINE.not_run("host.kernel_cmdline reads the running one")


def _no_reading(output: Output) -> Reading[ConfiguredCmdline]:
    if output.tool_missing:
        return CONFIGURED_CMDLINE.unsupported("neither file is on this machine")
    if output.refused:
        return CONFIGURED_CMDLINE.not_run("reading the configuration was refused")
    if "### end" in output.stdout:
        return CONFIGURED_CMDLINE.absent("neither GRUB nor /etc/kernel/cmdline sets options")
    return CONFIGURED_CMDLINE.unreadable("no kernel options in the output")


probe = Probe(
    __name__,
    title="Kernel options for the next boot",
    commands=(Command(_SH),),
    supplies=(CONFIGURED_CMDLINE, HOST_CMDLINE),
    parse=parse,
    signature=Signature(
        typed=r"/etc/kernel/cmdline|/etc/default/grub",
        starts=(
            r"^(?!BOOT_IMAGE=|initrd=|root=)(?:(?:quiet|splash|r[ow]|[\w.-]+=\S*),? ){0,20}"
            r"(?:(?:amd_|intel_)?iommu|pcie_acs_override)=",
            r"^\s*GRUB_CMDLINE_LINUX",
            r"^### /etc/(?:default/grub|kernel/cmdline)",
        ),
        belongs=r"^\s*#?\s*GRUB_|^### |^root=|^\s*#",
        score=0.92,
        any_machine=True,
        with_command=True,
    ),
)
