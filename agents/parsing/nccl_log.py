"""Version, transports and variables from an NCCL log (NCCL_DEBUG=INFO, NCCL 2.4 to 2.31).

Transport lines (src/transport/{p2p,shm,net}.cc): "Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", "via
P2P/IPC", "via P2P/CUMEM/read", "via P2P/indirect/2[b000]", "via SHM/direct/direct", "via direct shared
memory" (before 2.13), "[send] via NET/Socket/0", "[receive] via NET/IB/0/GDRDMA". "Ring 00 :" before 2.5.
Ranks write at the same time, so one line may hold two messages; each counts.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from agents.facts.nccl import NcclTransports

_LINE_CAP = 4000
_CACHED_TAILS = 1000
_LINES_KEPT = 4
# Exact forms, so that a message that follows on the same line does not become part of them.
_VIA = re.compile(
    r" via (?P<via>direct shared memory|P2P/indirect"
    r"|P2P/(?:direct pointer|IPC|CUMEM|MNNVL)(?:/read)?(?:/CE)?|P2P/\w{1,20}"
    r"|SHM(?:/(?:direct|CE)){0,2}"
    r"|NET/[\w-]{1,24}(?: Libfabric)?(?:/\d{1,3})?(?:/GDRDMA(?:\(\w{1,8}\))?)?(?:/Shared)?)"
)
_VERSION = re.compile(r"NCCL version (?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,3})?[\w.+-]{0,30})")
_ENGINE_SAYS = re.compile(r"using nccl==(?P<version>\d{1,2}\.\d{1,3}\.\d{1,3})")
_SET = re.compile(r"\b(?P<name>NCCL_[A-Z0-9_]{2,60}) set by environment to (?P<value>.*)$")
# Assignments that open a line: `export A=1`, the output of env(1), the words before a command.
_PROMPT = re.compile(r"^(?:\S{0,80}[$#%>] |[\s>$#]{0,8})(?:export |declare -x )?")
_ASSIGNED = re.compile(r"(?P<name>[A-Z][A-Z0-9_]{1,60})=(?P<value>\"[^\"]*\"|'[^']*'|[^\s;]*)(?:\s{1,4}|;|$)")
_REFUSED = re.compile(
    r"(?:P2P is disabled between connected GPUs (?P<a>\d+) and (?P<b>\d+)"
    r"|(?:Could not enable P2P|peer query failed) between dev (?P<c>\d+)\S* and dev (?P<d>\d+))"
)
_NODES = re.compile(r"\bnNodes (\d{1,6})\b")
_RANKS = re.compile(r"\bn[rR]anks (\d{1,6})\b")


@dataclass
class NcclLog:
    """lines: 1-based, by their content ("version", "via P2P", "via SHM", "via NET", "env", "refused", "init").

    env: the last value of each variable. via: how often each transport text occurs.
    """

    version: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    via: Counter[str] = field(default_factory=Counter)
    refused: set[tuple[int, int]] = field(default_factory=set)
    nodes: int | None = None
    ranks: int | None = None
    started: bool = False
    completed: bool = False
    is_log: bool = False
    lines: dict[str, list[int]] = field(default_factory=dict)
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def at(self, *kinds: str) -> tuple[int, ...]:
        """The first lines of each kind whose name starts with one of these prefixes."""
        line_groups = (lines for kind, lines in self.lines.items() if kind.startswith(kinds))
        return tuple(sorted({line for lines in line_groups for line in lines}))

    def transports(self) -> NcclTransports | None:
        """None when no line names a transport or a refusal."""
        if not self.via and not self.refused:
            return None
        counts = dict.fromkeys(("P2P", "SHM", "NET"), 0)
        for text, count in self.via.items():
            counts[_family(text)] += count
        return NcclTransports(
            counts["P2P"],
            counts["SHM"],
            counts["NET"],
            tuple(sorted(self.via)),
            len(self.refused),
            self.nodes,
            self.ranks,
            self.completed if self.started or self.completed else None,
        )

    def note(self, kind: str, line: int) -> None:
        first_lines = self.lines.setdefault(kind, [])
        if len(first_lines) < _LINES_KEPT and line not in first_lines:
            first_lines.append(line)


def parse(text: str) -> NcclLog:
    """Reads any text in time linear in its length; a text that is no NCCL log gives an empty NcclLog."""
    log = NcclLog()
    for number, raw in enumerate(text.split("\n"), 1):
        if "NCCL" not in raw and " via " not in raw and "nccl==" not in raw:
            continue
        line = raw if len(raw) <= _LINE_CAP else raw[:_LINE_CAP]
        if " via " in line and ("-> " in line or "→ " in line):
            _take_transport(log, line, number)
            if line.count("NCCL INFO") > 1:  # another rank wrote on the same line
                _take_message(log, line, number)
        elif "NCCL INFO" in line or "NCCL WARN" in line or "NCCL version" in line:
            log.is_log = True
            _take_message(log, line, number)
        elif "NCCL_" in line and _take_assignments(log, line):
            log.note("env", number)
        elif version_match := _ENGINE_SAYS.search(line):
            log.version = log.version or version_match["version"]
            log.note("version", number)
    return log


def _take_transport(log: NcclLog, line: str, number: int) -> None:
    """Counts the text after "via". The same few texts appear thousands of times, so they are cached."""
    tail = line[line.index(" via ") :]
    texts = log.tails.get(tail)
    if texts is None:
        texts = tuple(match["via"] for match in _VIA.finditer(tail))
        if len(log.tails) < _CACHED_TAILS:
            log.tails[tail] = texts
    for text in texts:
        log.via[text] += 1
        log.is_log = True
        log.note(f"via {_family(text)}", number)


def _family(text: str) -> str:
    """P2P, SHM or NET."""
    return "SHM" if text == "direct shared memory" else text.partition("/")[0]


def _take_message(log: NcclLog, line: str, number: int) -> None:
    if "set by environment" in line:
        if setting := _SET.search(line):
            log.env[setting["name"]] = setting["value"].strip().removesuffix(".")
            log.note("env", number)
    elif "NCCL version" in line:
        if version := _VERSION.search(line):
            log.version = version["version"]
            log.note("version", number)
    elif ("P2P" in line or "peer query" in line) and (refused := _REFUSED.search(line)):
        pair = sorted(int(group) for group in refused.groups() if group is not None)
        log.refused.add((pair[0], pair[1]))
        log.note("refused", number)
    if "anks " in line:
        _take_size(log, line)
    if "Init START" in line or "Init COMPLETE" in line or "Bootstrap" in line:
        log.started = True
        log.completed = log.completed or "Init COMPLETE" in line
        log.note("init", number)


def _take_assignments(log: NcclLog, line: str) -> bool:
    """The NCCL variables among the assignments that open the line."""
    before = len(log.env)
    prompt = _PROMPT.match(line)
    at = prompt.end() if prompt else 0
    while assigned := _ASSIGNED.match(line, at):
        at = assigned.end()
        if assigned["name"].startswith("NCCL_"):
            log.env[assigned["name"]] = assigned["value"].strip("\"'")
    return len(log.env) > before


def _take_size(log: NcclLog, line: str) -> None:
    nodes, ranks = _NODES.search(line), _RANKS.search(line)
    if nodes:
        log.nodes = max(log.nodes or 0, int(nodes[1]))
    if ranks:
        log.ranks = max(log.ranks or 0, int(ranks[1]))
