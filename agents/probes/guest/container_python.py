"""An interpreter that has torch, inside a running engine's container: benchmarks can run there.

docker-ps(1), docker-exec(1), podman's too. The probe asks a container whose image or command names an engine and
whose name holds only characters that container runtimes allow. It writes nothing there.
"""

import re

from agents.facts.platform import PYTHON_WITH_TORCH
from agents.interpreter import interpreter_of
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""for tool in docker podman ''; do command -v "$tool" >/dev/null && break; done
[ "$tool" ] || exit 127
code='
import importlib.metadata, importlib.util, sys
sys.path[:] = [p for p in sys.path if p]
if importlib.util.find_spec("torch"):
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "?"
    print(sys.executable, version)'
inside='cd /; for p in "$(command -v python3)" "$(command -v python)" /opt/venv/bin/python \
/opt/conda/bin/python /venv/bin/python /workspace/.venv/bin/python /usr/local/bin/python3; do
[ ! -x "$p" ] || timeout 5 "$p" -c "$1" 2>/dev/null; done'
running=$($tool ps --no-trunc --format '{{.Names}} {{.Image}} {{.Command}}' 2>&1) ||
  { echo "$running" >&2; exit 1; }
echo "$running" | grep -iE 'vllm|sglang|lmsys|tensorrt|tritonserver|lmdeploy|text-generation' | head -n 8 |
while read -r name _; do
  case $name in
    [!A-Za-z0-9]* | *[!A-Za-z0-9_.-]*) echo 'a container with another name was not asked' ;;
    *) timeout 12 $tool exec "$name" sh -c "$inside" sh "$code" </dev/null 2>&1 | sed "s|^/|$tool:$name:/|" ;;
  esac
done
echo 'containers tried'"""


_PYTHON_LINE = re.compile(r"^((?:docker|podman):\S{1,600}) (\d[\w.+!-]{0,60}|\?)$", re.ASCII)
_END = "containers tried"


def parse(output: Output) -> Readings:
    pythons = [
        (number, match[1], match[2])
        for number, line in enumerate(output.lines, 1)
        if (match := _PYTHON_LINE.match(line[:800].strip())) and _is_safe(match[1])
    ]
    if pythons:
        number, python, version = min(pythons, key=lambda item: item[2].endswith("+cpu"))
        return (PYTHON_WITH_TORCH.known(f"{python} {version}", lines=(number,)),)
    if output.tool_missing:
        return (PYTHON_WITH_TORCH.unsupported("neither docker nor podman is installed"),)
    if output.refused or "permission denied" in output.stderr:
        return (PYTHON_WITH_TORCH.not_run("asking the container runtime was refused"),)
    if "Cannot connect to the Docker daemon" in output.stderr[-2000:]:
        return (PYTHON_WITH_TORCH.not_run("the container runtime does not answer"),)
    if output.truncated or output.timed_out:
        return (PYTHON_WITH_TORCH.not_run("not all containers answered"),)
    if _END in output.stdout:
        return (PYTHON_WITH_TORCH.absent("no running engine's container has a Python with torch"),)
    return (PYTHON_WITH_TORCH.unreadable("no interpreter in a container in the output"),)


def _is_safe(python: str) -> bool:
    try:
        return bool(interpreter_of(python).engine)
    except ValueError:
        return False


probe = Probe(
    __name__,
    title="Python with torch in a container",
    commands=(Command(_SH, root=True),),
    supplies=(PYTHON_WITH_TORCH,),
    parse=parse,
    signature=Signature(
        starts=(r"^(?:docker|podman):[A-Za-z0-9]\S*:/\S*/python\S* \d+\.\d+\.\d+\S*$",),
        belongs=r"^(?:docker|podman):\S+ \S+$|^containers tried",
    ),
    timeout_s=45,
    slow=True,
    root_adds="the container runtime, which answers root and its own group only",
    for_runs=True,
)
