"""modprobe.d(5) files: options, blacklist, softdep; also as people retype them.

`options nvidia NVreg_RegistryDwords="a=1;b=2" NVreg_EnableGpuFirmware=0`. modprobe treats "-" and "_" in module names
alike. An `options` line without its first word counts when its module is one of interest.
"""

import re

from agents.facts.platform import ModuleConfig, ModuleOption

_LINE_CAP = 4096
_COMMAND = re.compile(r"^[\s>|]*(?P<word>options|blacklist|softdep)\s+(?P<module>[\w-]{1,60})(?P<rest>(?:\s.*)?)$")
_BARE = re.compile(r"^[\s>|]*(?P<module>(?:vfio|nvidia|nouveau|kvm|iommufd)[\w-]{0,40})(?P<rest>\s+\w+=\S.*)$")
_OPTION = re.compile(r"(?<!\S)(?P<name>\w{1,80})=(?P<value>\"[^\"]*\"|'[^']*'|\S*)")
_INSTALL = re.compile(r"^[\s>|]*install\s+(?P<module>[\w-]{1,60})\s+/(?:usr/)?bin/(?:true|false)\b")

Answer = tuple[ModuleConfig, tuple[int, ...]]


def parse(text: str) -> Answer | None:
    """The configuration and its lines; None when no line is one of modprobe's."""
    options: list[ModuleOption] = []
    blacklisted: list[str] = []
    softdeps: list[tuple[str, str]] = []
    lines: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:_LINE_CAP]
        command, bare, install = _COMMAND.match(line), _BARE.match(line), _INSTALL.match(line)
        if command and command["word"] == "softdep":
            softdeps.append((command["module"], command["rest"].strip()))
        elif command and command["word"] == "blacklist":
            blacklisted.append(_module(command["module"]))
        elif install:
            blacklisted.append(_module(install["module"]))
        elif match := command or bare:
            line_options = _options(match)
            if not line_options:
                continue
            options += line_options
        else:
            continue
        lines.append(number)
    if not lines:
        return None
    return ModuleConfig(tuple(options), tuple(blacklisted), tuple(softdeps)), tuple(lines)


def registry(text: str) -> dict[str, str]:
    """{"ForceP2P": "0x11"} from "ForceP2P=0x11;RMForceStaticBar1=1", quoted or not."""
    pairs = (part.split("=", 1) for part in text.strip().strip("\"'").split(";") if "=" in part)
    return {name.strip(): value.strip() for name, value in pairs if name.strip()}


def _options(line: re.Match[str]) -> list[ModuleOption]:
    rest = line["rest"].split(" #", 1)[0]
    module = _module(line["module"])
    return [ModuleOption(module, option["name"], option["value"].strip("\"'")) for option in _OPTION.finditer(rest)]


def _module(name: str) -> str:
    return name.replace("-", "_")
