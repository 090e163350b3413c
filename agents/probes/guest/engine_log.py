"""The engine's start-up log: custom all-reduce, CUDA graphs, backends, parallelism, NCCL's version.

The logs of vLLM and SGLang containers, or the log named in PEERPATH_ENGINE_LOG. vLLM logs why it does not use its own
all-reduce; on a machine without peer access that is the first sign.
"""

from typing import Any

from agents.facts import Reading
from agents.facts.nccl import ENGINE, ENGINE_START, NCCL_ENV, NCCL_TRANSPORTS, NCCL_VERSION
from agents.parsing import engine, engine_log, nccl_log
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut

_FACTS = (ENGINE_START, ENGINE, NCCL_VERSION, NCCL_TRANSPORTS, NCCL_ENV)
_NONE = "no engine's log was found"
_WANTED = (
    "raph|all_?reduce|allreduce|backend|server_args=|non-default args|args: Namespace|LLM engine",
    "nccl|NCCL|vLLM API server version|parallel_size|tp_size",
)
_SH = rf"""show() {{
  grep -E -e '{_WANTED[0]}' \
    -e '{_WANTED[1]}' | head -n 4000 |
  sed -E "s/((api_?-?key|token|password|secret)[^=:]{{0,3}}[=:] ?)[^, )]+/\1***/gI
    s/(hf_|sk-)[A-Za-z0-9_-]{{8,}}/\1***/g"
}}
if [ -n "$PEERPATH_ENGINE_LOG" ]; then head -c 20000000 -- "$PEERPATH_ENGINE_LOG" | show; exit 0; fi
n=0
for tool in docker podman; do for id in $("$tool" ps -q 2>/dev/null); do
  "$tool" inspect "$id" 2>/dev/null | grep -qiE "vllm|sglang" || continue
  n=1; echo "### log of container $id"; "$tool" logs "$id" 2>&1 | head -c 20000000 | show
done; done
if [ $n = 0 ]; then echo "{_NONE}"; fi"""


def parse(output: Output) -> Readings:
    answer = engine_log.parse(output.stdout)
    if answer is None:
        return (_no_reading(output), *(fact.not_run("no engine's start-up log") for fact in _FACTS[1:]))
    start, lines = answer
    engines = engine.parse(output.stdout)
    log = nccl_log.parse(output.stdout)
    transports, own = log.transports(), log.at("version", "env", "init")
    return (
        ENGINE_START.known(start, lines=lines, missing=cut(output)),
        ENGINE.known(engines[0].engine, lines=engines[0].lines)
        if engines and engines[0].flags_seen
        else ENGINE.not_run("this part of the log does not repeat the flags"),
        NCCL_VERSION.known(log.version, lines=log.at("version"))
        if log.version
        else NCCL_VERSION.not_run("this log does not name NCCL's version"),
        NCCL_TRANSPORTS.known(transports, lines=log.at("via", "refused"), missing=cut(output))
        if transports
        else NCCL_TRANSPORTS.not_run("NCCL_DEBUG=INFO was not set, or its lines are not here", lines=own),
        NCCL_ENV.known(log.env, lines=log.at("env"))
        if log.env
        else NCCL_ENV.not_run("NCCL's own lines name no variable"),
    )


def _no_reading(output: Output) -> Reading[Any]:
    if output.tool_missing:
        return ENGINE_START.unsupported("no log can be read here")
    if output.refused:
        return ENGINE_START.not_run("reading the engine's log was refused")
    if _NONE in output.stdout or not output.stdout.strip():
        return ENGINE_START.not_run(f"{_NONE}; its first lines can be pasted")
    return ENGINE_START.unreadable("no line by which an engine tells of graphs or all-reduce")


probe = Probe(
    __name__,
    title="Start-up log of the engine",
    commands=(Command(_SH, root=True),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"(?:docker|podman|kubectl)\s+logs\b|journalctl\b.*(?:vllm|sglang)",
        # Each begins with plain letters, which makes a search in long logs cheap.
        starts=(
            r"Custom allreduce is disabled",
            r"Graph capturing finished in \d+ secs",
            r"Capture cuda graph (?:begin|end|bs)",
            r"vLLM API server version \d",
            r"LLM engine \(v[\w.+-]+\) with config: ",
            r"server_args=ServerArgs\(",
            r"non-default args: \{",
            # Both engines' lines name their source file; a log may begin with any of them.
            r"^(?:[\w.-]{1,40} +\| +)?(?:\(\w{1,40}(?: pid=\d+)?\) )?"
            r"(?:INFO|WARNING|ERROR) [\d: -]{14} \[\w+\.py:\d+\]",
            r"^\[\d{4}-\d\d-\d\d [\d:]{8}(?: [DTPE]{2}\d+)+\] ",
        ),
        belongs=(
            r"\b(?:INFO|WARNING|ERROR|DEBUG)\b|^\[?\d{4}-\d\d-\d\d[ T]|^\(\w+[ )]|NCCL (?:INFO|WARN|version)|"
            r"^Capturing |^Loading |\d+%\|"
        ),
        score=0.92,
    ),
    timeout_s=30,
    cap_kib=4096,
    slow=True,
    root_adds="the logs of containers",
    left_out="lines that say nothing of graphs, backends, parallelism or NCCL; values of keys, "
    "tokens, passwords and secrets",
)
