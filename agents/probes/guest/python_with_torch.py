"""An interpreter that has torch, found without importing it: benchmarks run with that one.

importlib.util.find_spec of a top-level name imports nothing; the version comes from the package's
metadata. Only usual places are tried, never what the process list names.
"""

from __future__ import annotations

import re

from agents.facts.platform import PYTHON_WITH_TORCH
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""cd / || exit 1
try() {
  [ -x "$1" ] || return 0
  case " $seen " in *" $1 "*) return 0 ;; esac
  seen="$seen $1"
  [ "$(echo "$seen" | wc -w)" -le 24 ] || return 0
  timeout 5 "$1" -c '
import importlib.metadata, importlib.util, sys
sys.path[:] = [p for p in sys.path if p]
version = "-"
if importlib.util.find_spec("torch"):
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "?"
print(sys.executable, version)' 2>/dev/null || echo "$1 !"
}
seen=
for p in "$VIRTUAL_ENV/bin/python" "$CONDA_PREFIX/bin/python" "$(command -v python3)" \
    "$(command -v python)" /opt/conda/bin/python /opt/venv/bin/python /venv/bin/python \
    /usr/local/bin/python3 /usr/bin/python3 /workspace/venv/bin/python /workspace/.venv/bin/python \
    "$HOME"/.venv/bin/python "$HOME"/venv/bin/python "$HOME"/*/.venv/bin/python \
    "$HOME"/*/venv/bin/python "$HOME"/miniconda3/bin/python "$HOME"/anaconda3/bin/python \
    "$HOME"/miniforge3/bin/python "$HOME"/*conda3/envs/*/bin/python "$HOME"/miniforge3/envs/*/bin/python \
    /opt/conda/envs/*/bin/python /opt/*/bin/python /opt/*/venv/bin/python; do
  try "$p"
done
echo 'interpreters tried'
exit 0"""

_FOUND = re.compile(r"^(/\S{1,400}) (\d[\w.+!-]{0,60}|\?|-|!)$")


def parse(output: Output) -> Readings:
    tried = [
        (number, found[1], found[2])
        for number, line in enumerate(output.lines, 1)
        if (found := _FOUND.match(line[:500].strip()))
    ]
    having = [item for item in tried if item[2] not in ("-", "!")]
    if having:
        number, path, version = min(having, key=lambda item: item[2].endswith("+cpu"))
        return (PYTHON_WITH_TORCH.known(f"{path} {version}", lines=(number,)),)
    failed = [path for _, path, version in tried if version == "!"]
    if failed or output.truncated or output.timed_out:
        return (PYTHON_WITH_TORCH.not_run(f"no answer from {', '.join(failed) or 'all'}"),)
    if "interpreters tried" in output.stdout:
        why = f"none of {len(tried)} has torch" if tried else "no Python in the usual places"
        return (PYTHON_WITH_TORCH.absent(why),)
    if output.tool_missing:
        return (PYTHON_WITH_TORCH.absent("no Python in the usual places"),)
    return (PYTHON_WITH_TORCH.unreadable("no interpreter with a version in the output"),)


probe = Probe(
    __name__,
    title="Python with torch",
    commands=(Command(_SH),),
    supplies=(PYTHON_WITH_TORCH,),
    parse=parse,
    signature=Signature(
        starts=(r"^/\S+/python\S* \d+\.\d+\.\d+\S*$",), belongs=r"^/\S+ \S+$|^inter"
    ),
    timeout_s=45,
    slow=True,
)
