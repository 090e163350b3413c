"""NCCL variables outside the command line: in NCCL's files and in the environment of running engines.

/etc/nccl.conf and ~/.nccl.conf hold NAME=value lines, NCCL_CONF_FILE names another file; the environment wins
(https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html). /proc/PID/environ shows a process's variables at
its start; later changes are only in its log.
"""

import re
from collections.abc import Mapping

from agents.facts import Reading
from agents.facts.nccl import NCCL_CONF, NCCL_ENV
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""for f in /etc/nccl.conf "$HOME/.nccl.conf" "$NCCL_CONF_FILE"; do
  [ -r "$f" ] && echo "### file $f" && grep -E "^[[:space:]]*NCCL_[A-Z0-9_]+=" "$f"; done
for p in $(grep -lsE "sglang[.:]|vllm|VLLM::|trtllm-serve|lmdeploy|llama-server" /proc/[0-9]*/cmdline); do
  p=${p%/cmdline}; { [ -d "$p" ] && ! grep -qs grep "$p/cmdline"; } || continue
  [ -r "$p/environ" ] || { echo "### process ${p#/proc/} not readable"; continue; }
  echo "### process ${p#/proc/}"
  { tr "\0" "\n" <"$p/environ"; } 2>/dev/null | grep -E "^NCCL_[A-Z0-9_]+="
done
echo '### end'"""
_HEAD = re.compile(r"^### (?P<kind>file|process|end)\b ?(?P<what>\S*)(?P<closed> not readable)?")
_PAIR = re.compile(r"^[\s>|]{0,12}(?:export )?(?P<name>NCCL_[A-Z0-9_]{1,60})=(?P<value>.{0,1000})$")


def parse(output: Output) -> Readings:
    sections = _sections(output.lines)
    if not sections:
        if output.refused:
            return tuple(f.not_run("reading was refused") for f in (NCCL_CONF, NCCL_ENV))
        kind = "no files and no processes" if output.tool_missing else "no line of an NCCL file"
        read = (NCCL_CONF.unsupported if output.tool_missing else NCCL_CONF.unreadable)(kind)
        return (read, NCCL_ENV.not_run("no process was looked into"))
    return (_files(sections), _processes(sections))


_Section = tuple[str, bool, dict[str, str], list[int]]


def _sections(lines: list[str]) -> list[_Section]:
    """(kind, readable, variables, lines). Lines above the first head belong to a pasted file."""
    sections: list[_Section] = []
    for number, raw in enumerate(lines, 1):
        line = raw[:1200].rstrip()
        head, pair = _HEAD.match(line), _PAIR.match(line)
        if head:
            sections.append((head["kind"], not head["closed"], {}, []))
        elif pair and pair["name"] != "NCCL_VERSION":  # the image's package, no setting
            if not sections:
                sections.append(("file", True, {}, []))
            sections[-1][2][pair["name"]] = pair["value"].strip().strip("\"'")
            sections[-1][3].append(number)
    return sections


def _files(sections: list[_Section]) -> Reading[Mapping[str, str]]:
    values: dict[str, str] = {}
    lines: list[int] = []
    for kind, _, variables, at in sections:
        if kind == "file":
            values |= {name: value for name, value in variables.items() if name not in values}
            lines += at
    if values:
        return NCCL_CONF.known(values, lines=tuple(lines))
    return NCCL_CONF.absent("no file of NCCL's sets a variable")


def _processes(sections: list[_Section]) -> Reading[Mapping[str, str]]:
    """The engine's variables; the reading says so when processes differ."""
    read = [(variables, at) for kind, open_, variables, at in sections if kind == "process" and open_]
    closed = sum(kind == "process" and not open_ for kind, open_, _, _ in sections)
    if not read:
        looked = any(kind == "end" for kind, _, _, _ in sections)
        why = "no engine runs here" if looked else "no process was looked into"
        if closed:
            why = "the engine's environment may be read by root only"
        return NCCL_ENV.not_run(why)
    fullest, lines = max(read, key=lambda item: len(item[0]))
    others = sum(variables != fullest for variables, _ in read)
    missing = (f"{others} of {len(read)} processes have other values",) if others else ()
    if not fullest:
        return NCCL_ENV.absent("the engine was started without an NCCL variable")
    return NCCL_ENV.known(fullest, lines=tuple(lines), missing=missing)


probe = Probe(
    __name__,
    title="NCCL files and variables of the engine",
    commands=(Command(_SH),),
    supplies=(NCCL_CONF, NCCL_ENV),
    parse=parse,
    signature=Signature(
        typed=r"nccl\.conf\b",
        starts=(r"^### (?:file|process) ",),
        belongs=r"^### |^\s*(?:export )?NCCL_[A-Z0-9_]+=|^\s*#",
    ),
    root_adds="the environment of other users' engines",
    left_out="every variable that is not NCCL's",
)
