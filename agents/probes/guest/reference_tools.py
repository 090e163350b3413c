"""Which reference tools are on the machine: nccl-tests, nvbandwidth, and two of the CUDA samples.

They can run beside our own measurements. The probe looks in PATH and where people build them. It never names a
program that another user can change, because the caller may be root.
"""

import re

from agents.facts.platform import REFERENCE_TOOLS
from agents.probe import Command, Output, Probe, Readings, Signature

TOOLS = ("all_reduce_perf", "nvbandwidth", "p2pBandwidthLatencyTest", "simpleP2P")

_SH = r"""cd / || exit 1; me=$(id -u)
ours() { owner=$(stat -L -c %u "$1" 2>/dev/null) && { [ "$owner" = 0 ] || [ "$owner" = "$me" ]; }; }
for tool in all_reduce_perf nvbandwidth p2pBandwidthLatencyTest simpleP2P; do
  for p in "$(command -v $tool)" /opt/*/build/$tool /opt/*/$tool /opt/*/bin/$tool /usr/local/bin/$tool \
      /usr/local/cuda/bin/$tool /usr/local/cuda/extras/demo_suite/$tool \
      /usr/local/cuda/samples/bin/*/*/*/$tool /usr/local/cuda/samples/*/$tool/$tool \
      /workspace/*/build/$tool /workspace/*/$tool "$HOME"/$tool "$HOME"/*/$tool "$HOME"/*/build/$tool \
      "$HOME"/*/bin/$tool "$HOME"/*/build/Samples/*/*/$tool "$HOME"/*/Samples/*/$tool/$tool; do
    [ -f "$p" ] && [ -x "$p" ] && ours "$p" && ours "${p%/*}" || continue
    case $p in /*) echo "$tool $p" && break ;; esac
  done
done
echo 'tools looked for'"""

_TOOL_PATH = re.compile(rf"^({'|'.join(TOOLS)}) (/[\w./+-]{{1,400}})$", re.ASCII)


def parse(output: Output) -> Readings:
    tools: dict[str, str] = {}
    lines = []
    for number, line in enumerate(output.lines, 1):
        if (match := _TOOL_PATH.match(line[:600].strip())) and match[2].endswith(f"/{match[1]}"):
            tools.setdefault(match[1], match[2])
            lines.append(number)
    if tools:
        cut = ("the end of the output",) if output.truncated or output.timed_out else ()
        return (REFERENCE_TOOLS.known(tools, lines=tuple(lines), missing=cut),)
    if output.truncated or output.timed_out:
        return (REFERENCE_TOOLS.not_run("the search did not come to its end"),)
    if "tools looked for" in output.stdout:
        return (REFERENCE_TOOLS.absent("none is on PATH or in the usual places"),)
    return (REFERENCE_TOOLS.unreadable("no tool with its path in the output"),)


probe = Probe(
    __name__,
    title="Reference tools",
    commands=(Command(_SH),),
    supplies=(REFERENCE_TOOLS,),
    parse=parse,
    signature=Signature(
        starts=(rf"^(?:{'|'.join(TOOLS)}) /\S+$", r"^tools looked for$"), belongs=r"^\w+ /\S+$|^tools looked for$"
    ),
    timeout_s=15,
    for_runs=True,
)
