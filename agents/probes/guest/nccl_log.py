"""The transport that NCCL really uses, its version, and the variables it read.

The engine's own log with NCCL_DEBUG=INFO
(https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug). NCCL chooses transports once, when it
creates a communicator, so a log that starts later shows none.
"""

from collections.abc import Mapping
from typing import Any

from agents.facts import Fact, Reading
from agents.facts.nccl import NCCL_ENV, NCCL_TRANSPORTS, NCCL_VERSION, NcclTransports
from agents.parsing import nccl_log
from agents.parsing.nccl_log import NcclLog
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut

_FACTS = (NCCL_VERSION, NCCL_TRANSPORTS, NCCL_ENV)
_SH = """[ -n "$PEERPATH_NCCL_LOG" ] || { echo "no log was named" >&2; exit 3; }
tail -c 20000000 -- "$PEERPATH_NCCL_LOG\""""


def parse(output: Output) -> Readings:
    log = nccl_log.parse(output.stdout)
    if not (log.is_log or log.version or log.env):
        return tuple(_no_reading(fact, output) for fact in _FACTS)
    version = (
        NCCL_VERSION.known(log.version, lines=log.at("version"))
        if log.version
        else NCCL_VERSION.not_run("no line of this text names the version")
    )
    return (version, _transports(log, output), _env(log))


def _no_reading(fact: Fact[Any], output: Output) -> Reading[Any]:
    if output.refused:
        return fact.not_run("the log may not be read")
    if output.exit_code not in (0, None) and not output.stdout:
        return fact.not_run(output.stderr.strip()[:200] or "the log could not be read")
    return fact.unreadable("no line of an NCCL log" if output.stdout.strip() else "an empty log")


def _transports(log: NcclLog, output: Output) -> Reading[NcclTransports]:
    transports = log.transports()
    if transports is None:
        why = "no channel line: the log is cut, or NCCL_DEBUG_SUBSYS leaves them out"
        return NCCL_TRANSPORTS.not_run(why, lines=log.at("version", "env", "init"))
    lines = log.at("via", "refused")
    return NCCL_TRANSPORTS.known(transports, lines=lines, missing=cut(output))


def _env(log: NcclLog) -> Reading[Mapping[str, str]]:
    if log.env:
        return NCCL_ENV.known(log.env, lines=log.at("env"))
    return NCCL_ENV.absent("no line says that a variable was set")


probe = Probe(
    __name__,
    title="NCCL log",
    commands=(Command(_SH, needs=("tail",)),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"(?:env|printenv|export)\b.*\bNCCL_|\bNCCL_[A-Z0-9_]+=",
        starts=(
            r"\bNCCL (?:INFO|WARN)\b",
            r"^NCCL version \d",
            r"\bvia (?:P2P/|SHM/|NET/|direct shared memory)",
            r"\busing nccl==\d",
            r"^[\s>$#]{0,8}(?:export |declare -x )?NCCL_[A-Z0-9_]+=",
        ),
        belongs=r"\bNCCL (?:INFO|WARN|version)\b|\bvia (?:P2P|SHM|NET)/|isAllDirectP2p"
        r"|^(?:\(\w+[ )]|\[|\d{4}-\d\d-\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b|[\w.-]+:\d+:\d+ \[)"
        r"|^[\s>$#]{0,8}(?:export )?NCCL_[A-Z0-9_]+=",
    ),
    timeout_s=30,
    cap_kib=20_480,
    on_demand=True,
)
