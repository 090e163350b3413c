"""Lines of a pasted terminal log or document: prompts, typed commands, headings, pager cuts."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

# Patterns only see the start of longer lines, so that one line of 100 MB costs no more than others.
_SHOWN = 2000
_QUOTE = re.compile(r"^(?:\s?[>|](?:\s|$))+")
_MARK = re.compile(r"^\s?>\s?")
_PAGER = re.compile(r"^(?:--More--.*|\(END\)|:|lines \d+-\d+.*|\.{3,}|…|\[(?:\.{3,}|…)\])$")
_BREAK = re.compile(
    r"^(?:`{3,}\w*|~{3,}\w*|={2,} .* =*|-{3,} .*-{3,}|#{2,6} .*|\*{3,}"
    r"|(?:</?(?:details|summary|pre|code|p|br)(?: [^>]*)?/?>\s*)+(?:[^<>]*</summary>)?)$"
)
_PROMPT = re.compile(
    r"^(?:\([\w.-]+\) ?)?"
    r"(?:(?:[\w.-]+@(?P<machine>[\w.-]+)[: ]?[^\s$#%>]*|\[[\w.-]+@(?P<boxed>[\w.-]+) [^\]]*\]"
    r"|bash-[\d.]+|sh-[\d.]+|PS [A-Z]:\S*)"
    r" ?[$#%>❯]|[$%❯➜])(?:\s+|$)(?P<command>.*)$"
)
_DECORATED = re.compile(
    r"^(?:[#=*>+-]{1,8}\s*)?(?:\d+[.)]\s+)?[`*\"']*(?P<command>(?:[a-z./]|[A-Z_][A-Z0-9_]*=).*?)[`*\"':=\s-]*$"
)
_PREFIX = re.compile(
    r"^(?:(?:sudo|doas|time|nohup|watch|timeout|env)\s+(?:-\S+\s+)*(?:\d+[smh]?\s+)?"
    r"|[A-Z_][A-Z0-9_]*=\S*\s+|LC_ALL=C\s+)+"
)
_QUOTES = (">", "|")
# A log's line: "[   12.345678] …", "host:4121:4188 [0] NCCL INFO …". Most of a long paste.
_STAMPED = re.compile(r"\[ *\d+\.\d+\] |\S+:\d+:\d+ \[\d+\] NCCL ")
_PAGER_OR_BREAK = frozenset("-(:l.…[`~=#*<")
_SIGN = re.compile(r"[$#%>❯➜]")
_DECORATIONS = "#=*>+-`\"' \t0123456789.)"
_BEFORE_TOOLS = frozenset({"sudo", "doas", "time", "nohup", "watch", "timeout", "env"})
_TOOLS = re.compile(
    r"^(?:\S*/)?(?:nvidia-smi|nvidia-\w+|lspci|lscpu|lsmod|lsusb|lsblk|lshw|dmesg|journalctl|qm|pvesh|pct"
    r"|pveversion|proxmox-boot-tool|efibootmgr|virsh|numactl|dmidecode|systemd-detect-virt|hostnamectl"
    r"|virt-what|modinfo|modprobe|cat|grep|egrep|zgrep|zcat|head|tail|less|more|find|ls|for|while|awk|sed"
    r"|df|free|uname|ps|pgrep|env|printenv|docker|podman|kubectl|ssh|python3?|pip3?|nvcc|sysctl|setpci|od"
    r"|xxd|hexdump|tr|strings|readlink|ip|ibstat|ethtool|ulimit|cpupower|rocm-smi|rocminfo|all_reduce_perf"
    r"|\w+_perf|p2pBandwidthLatencyTest|nvbandwidth|vllm|sglang|systemctl|fabricmanager|nv-fabricmanager"
    r"|dcgmi|guidellm|aiperf|genai-perf|mount|lsof|fuser|uptime|id|whoami|date|mokutil|update-grub|ipcs|nproc|getconf"
    r"|iperf3?)(?:\s|$)"
)
_MISSING = re.compile(
    r"^(?:\S+: )*(?:(?:line )?\d+: )?\S+: (?:command not found|not found|No such file or directory)$"
    r"|Command '\S+' not found|^(?:zsh|bash|sh): command not found: ",
    re.M,
)


class Kind(StrEnum):
    """break: a fence or heading between outputs. pager: the mark of a pager or a cut."""

    BLANK = "blank"
    TEXT = "text"
    PROMPT = "prompt"
    COMMAND = "command"
    BREAK = "break"
    PAGER = "pager"


@dataclass(frozen=True, slots=True)
class Line:
    """text: without quoting and indent. forms: the variants to match, raw first. command: the typed text. prompted:
    after a shell's prompt. glued: output follows the command on the same line. machine: the name in the prompt, ""
    without one."""

    text: str
    forms: tuple[str, ...]
    kind: Kind
    command: str = ""
    prompted: bool = False
    glued: bool = False
    machine: str = ""


def read(raw: list[str]) -> list[Line]:
    lines = [_line(line) for line in raw]
    for at, line in enumerate(lines):
        if line.kind is Kind.PROMPT and line.text == "#" and _in_comment(lines, at):
            lines[at] = replace(line, kind=Kind.BLANK)
    return lines


def _in_comment(lines: list[Line], at: int) -> bool:
    """Whether "#" opens a line of a program's heading, which may be empty, and is no root's prompt."""
    beside = lines[max(at - 1, 0) : at + 2]
    return any(line.kind is Kind.TEXT and line.text.startswith("#") for line in beside)


def unquoted(raw: list[str]) -> str:
    """The lines without the ">" that mail programs and forums add."""
    if raw and raw[0].lstrip()[:1] == ">" and all(not r.strip() or _MARK.match(r) for r in raw):
        raw = [_MARK.sub("", line) for line in raw]
    return "\n".join(raw)


def says_cut(line: Line) -> bool:
    """Whether a person marked omitted lines here; a pager's mark only separates pages."""
    return line.kind is Kind.PAGER and bool(re.match(r"\[?(?:\.|…)", line.text))


def says_missing(text: str) -> bool:
    """Whether the few lines are a shell's message that it did not find the tool."""
    lines = [line for line in text.strip().split("\n", 4) if line.strip()]
    return len(lines) <= 3 and bool(_MISSING.search(text))


def _line(raw: str) -> Line:
    display = raw[:_SHOWN].rstrip()
    unquoted = _QUOTE.sub("", display) if display.lstrip()[:1] in _QUOTES else display
    text = unquoted.strip()
    forms = (display,) if text == display else tuple(dict.fromkeys((display, unquoted, text)))
    if not text:
        return Line(text, forms, Kind.BLANK)
    if _STAMPED.match(text):
        return Line(text, forms, Kind.TEXT)
    if prompt := _PROMPT.match(text) if _SIGN.search(text) else None:
        command = prompt["command"].strip()
        kind = Kind.COMMAND if command else Kind.PROMPT
        machine = prompt["machine"] or prompt["boxed"] or ""
        return Line(text, forms, kind, command, True, _is_glued(command), machine)
    if text in {"#", ">", "%"}:
        return Line(text, forms, Kind.PROMPT)
    if command := _bare_command(text):
        return Line(text, forms, Kind.COMMAND, command, False, _is_glued(command))
    if text[0] in _PAGER_OR_BREAK:
        if _PAGER.match(text):
            return Line(text, forms, Kind.PAGER)
        if _BREAK.match(text):
            return Line(text, forms, Kind.BREAK)
    return Line(text, forms, Kind.TEXT)


def _bare_command(text: str) -> str:
    """A command line alone, in a comment or as a heading: it begins with a tool and is no prose."""
    if text[0] == "-" and text[1:2].isalpha():
        return ""  # an option of a command line of several lines
    may_be = len(text) <= 400 and _may_be_command(text.lstrip(_DECORATIONS))
    decorated = _DECORATED.match(text) if may_be else None
    if not decorated:
        return ""
    command = _PREFIX.sub("", decorated["command"])
    if not _TOOLS.match(command) or _reads_on(command):
        return ""
    return command


def _may_be_command(text: str) -> bool:
    """A cheap first check: whether the line begins with a tool or a prefix of one. Most lines do not."""
    first = text.partition(" ")[0]
    return "=" in first or first in _BEFORE_TOOLS or bool(_TOOLS.match(text))


def _reads_on(command: str) -> bool:
    """Whether the line is prose or a table row that begins with a tool's name."""
    if re.match(r"^\S+\s*[:=]\s", command) or re.search(r"[.!?,]$", command):
        return True
    return bool(re.match(r"^\w+ (?:is|was|are|says|shows|of|the|and|has|for|to|in|with)\b", command))


def _is_glued(command: str) -> bool:
    return bool(re.search(r"\S(?:\t|\s{4,})\S", command))
