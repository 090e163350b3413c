"""An interpreter that has torch; benchmarks run with it. The probe does not import torch.

importlib.util.find_spec of a top-level name imports nothing; the version comes from the package's metadata. It tries
the running engines' interpreters, then the usual places. It never runs a program that another user can change,
because the caller may be root.
"""

import re

from agents.facts.platform import PYTHON_WITH_TORCH
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""cd / || exit 1; me=$(id -u) seen=
# What another user can change is not run: the one who asks may be root.
ours() { owner=$(stat -c %u "$1" 2>/dev/null) && { [ "$owner" = 0 ] || [ "$owner" = "$me" ]; }; }
try() {
  [ -x "$1" ] || return 0
  case " $seen " in *" $1 "*) return 0 ;; *) seen="$seen $1" ;; esac
  [ "$(echo "$seen" | wc -w)" -le 24 ] || return 0
  ours "$1" && ours "${1%/*}" || { echo "$1 ~"; return 0; }
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
# An engine of ours or of root: the word it was started with, which keeps its venv, and what it runs.
engines() {
  for file in $(grep -lsE 'vllm|sglang' /proc/[0-9]*/cmdline); do
    pid=${file#/proc/} pid=${pid%/cmdline}
    [ "$pid" != $$ ] && ours "/proc/$pid" || continue
    for p in "$(tr '\0' '\n' 2>/dev/null <"$file" | head -n 1)" "$(readlink "/proc/$pid/exe")"; do
      case $p in *[!A-Za-z0-9_./+-]*) ;; /*/python | /*/python[0-9]*) echo "$p" ;; esac
    done
  done | sort -u | head -n 4
}
for p in $(engines) "$VIRTUAL_ENV/bin/python" "$CONDA_PREFIX/bin/python" "$(command -v python3)" \
    "$(command -v python)" /opt/conda/bin/python /venv/bin/python /venv/*/bin/python /usr/local/bin/python3 \
    /usr/bin/python3; do try "$p"; done
for home in /workspace "$HOME" /opt /root /home/*; do
  for p in "$home"/.venv "$home"/venv "$home"/*/.venv "$home"/*/venv "$home"/*conda3 "$home"/miniforge3 \
      "$home"/*conda*/envs/* "$home"/miniforge3/envs/*; do try "$p/bin/python"; done
done
for p in /opt/*/bin/python; do try "$p"; done
echo 'interpreters tried'"""

_PYTHON_LINE = re.compile(r"^(/\S{1,400}) (\d[\w.+!-]{0,60}|\?|-|!|~)$")


def parse(output: Output) -> Readings:
    tried = [
        (number, match[1], match[2])
        for number, line in enumerate(output.lines, 1)
        if (match := _PYTHON_LINE.match(line[:500].strip()))
    ]
    having = [item for item in tried if item[2] not in ("-", "!", "~")]
    if having:
        number, path, version = min(having, key=lambda item: item[2].endswith("+cpu"))
        return (PYTHON_WITH_TORCH.known(f"{path} {version}", lines=(number,)),)
    failed = [path for _, path, version in tried if version == "!"]
    if failed or output.truncated or output.timed_out:
        return (PYTHON_WITH_TORCH.not_run(f"no answer from {', '.join(failed) or 'all'}"),)
    others = [path for _, path, version in tried if version == "~"]
    if others:
        why = f"not tried, as another user can change it: {', '.join(others)}"
        return (PYTHON_WITH_TORCH.not_run(why[:400]),)
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
    signature=Signature(starts=(r"^/\S+/python\S* \d+\.\d+\.\d+\S*$",), belongs=r"^/\S+ \S+$|^inter"),
    timeout_s=45,
    slow=True,
    for_runs=True,
)
