"""Which serving engine runs, and with which flags.

SGLang and vLLM servers by their command line (ps(1), or /proc/PID/cmdline where ps is missing); pasted start lines of
their logs answer too. The target already replaces API keys and tokens.
"""

from agents.facts.nccl import ENGINE
from agents.parsing import engine
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut

# Without ps, /proc shows the same.
_SH = r"""{ ps -eo args ||
    for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$f" && echo; done; } 2>/dev/null |
  grep -E -e 'sglang[.]launch_server|sglang serve|sglang::|vllm serve|vllm[.]entrypoints|VLLM::' \
    -e 'trtllm-serve|lmdeploy serve|llama-server' | grep -v 'grep -E' |
  sed -E 's/(--?[A-Za-z-]*([Kk]ey|[Tt]oken|[Pp]assword|[Ss]ecret)[= ]+)[^ ]+/\1***/g
    s/([A-Z_]*(KEY|TOKEN|PASSWORD|SECRET)=)[^ ]+/\1***/g; s/(hf_|sk-)[A-Za-z0-9_-]{8,}/\1***/g'"""


def parse(output: Output) -> Readings:
    engines = engine.parse(output.stdout)
    if not engines:
        if output.tool_missing:
            return (ENGINE.unsupported("neither ps nor /proc answered"),)
        if output.exit_code == 0 and not output.stdout.strip():
            return (ENGINE.absent("no server of a known engine runs where this user can see it"),)
        return (ENGINE.unreadable("no command line or start line of a known engine"),)
    first = engines[0]
    names = {item.engine.name for item in engines}
    gaps = [] if first.flags_seen else ["its command line: only a worker's title was seen"]
    gaps += [f"another engine: {name}" for name in sorted(names - {first.engine.name})]
    return (ENGINE.known(first.engine, lines=first.lines, missing=(*gaps, *cut(output))),)


probe = Probe(
    __name__,
    title="Serving engine and its flags",
    commands=(Command(_SH, needs=("grep", "sed")),),
    supplies=(ENGINE,),
    parse=parse,
    signature=Signature(
        typed=r"(?:\S*python[\d.]*\s+-m\s+)?(?:sglang\.launch_server|sglang\s+serve|vllm\.entrypoints\S*"
        r"|vllm\s+serve|trtllm-serve|lmdeploy\s+serve|llama-server)\b|ps\s+.*\|\s*grep.*(?:sglang|vllm)",
        starts=(
            r"(?:^|[\s/])(?:sglang\.launch_server|vllm\.entrypoints\.\S+|vllm serve|sglang serve)(?:\s|$)",
            r"server_args=ServerArgs\(|non-default args: \{|\bargs: Namespace\(",
            r"LLM engine \(v[\w.+-]+\) with config: |vLLM API server version \d",
            r"\b(?:VLLM::(?:Worker|EngineCore)|sglang::scheduler)",
        ),
        belongs=r"^\s*-{1,2}[A-Za-z]|\\\s*$|VLLM::|sglang::|sglang\.launch_server|vllm",
    ),
    slow=False,
    left_out="values of keys, tokens, passwords and secrets in command lines",
)
