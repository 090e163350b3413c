"""Versions of the software that runs the model: torch, NCCL's package, vLLM, SGLang, kernel libraries, the CUDA
toolkit.

The probe reads package metadata, which imports nothing and touches no GPU; pasted output of pip answers too.
guest.environment_report reads whole reports. An engine's log shows the NCCL that it loads.
"""

from agents.facts.platform import SOFTWARE
from agents.parsing import software
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""cd / || exit 1; me=$(id -u)
list='
import importlib.metadata, sys
sys.path[:] = [p for p in sys.path if p]
for d in importlib.metadata.distributions(): print((d.metadata["Name"] or "").lower(), d.version, sep="==")'
wanted="torch|nccl|vllm|sglang|sgl-kernel|flashinfer|triton|flash[-_]attn|transformers|lmdeploy|tensorrt"
for p in "$VIRTUAL_ENV/bin/python" "$CONDA_PREFIX/bin/python" "$(command -v python3)" /opt/conda/bin/python \
    /opt/venv/bin/python "$HOME"/.venv/bin/python "$HOME"/venv/bin/python "$HOME"/*/.venv/bin/python \
    /opt/*/.venv/bin/python; do
  # What another user can change is not run: the one who asks may be root.
  stat -L -c %u "$p" "${p%/*}" 2>/dev/null | grep -qvx -e 0 -e "$me" && continue
  found=$(timeout 10 "$p" -c "$list" 2>/dev/null | grep -E "^[^=]*($wanted)")
  case $found in *torch==*) echo "### $p"; echo "$found"; break ;; esac
done
for n in nvcc /usr/local/cuda/bin/nvcc; do "$n" --version 2>/dev/null | grep release && break; done
echo 'packages listed'"""


def parse(output: Output) -> Readings:
    versions, lines = software.parse(output.stdout)
    telling = {name for name in versions if name not in {"os", "python"}}
    if telling:
        missing = () if "torch" in versions else ("the version of torch",)
        return (SOFTWARE.known(versions, lines=lines, missing=missing),)
    if output.tool_missing:
        return (SOFTWARE.unsupported("no Python answered"),)
    if "packages listed" in output.stdout and not output.timed_out:
        return (SOFTWARE.absent("no Python in the usual places has torch"),)
    if output.timed_out:
        return (SOFTWARE.not_run("listing the packages took too long"),)
    return (SOFTWARE.unreadable("no version of torch or an engine in the output"),)


probe = Probe(
    __name__,
    title="Versions of torch and engines",
    commands=(Command(_SH),),
    supplies=(SOFTWARE,),
    parse=parse,
    signature=Signature(
        typed=r"\bpip3?\s+(?:list|freeze|show)\b|\buv pip\b|nvcc\s+(?:--version|-V)",
        starts=(
            r"^\[(?:pip3?|conda)\] [\w-]+(?:==|\s+)\d",
            r"^(?:torch|vllm|sglang|nvidia[-_]nccl[-_]cu\d+)(?:==|\s+)\d+\.\d",
            r"^nvcc: NVIDIA \(R\) Cuda compiler",
            r"^(?:NVCC: )?Cuda compilation tools, release ",
        ),
        belongs=(
            r"^\[(?:pip3?|conda)\]|^[\w.-]+==\d|^[\w.-]{2,40}\s{1,40}\d[\w.]*(?:\s|$)|^Copyright \(c\)|"
            r"^Built on |^Build cuda_|^Cuda compilation|^-{5,}"
        ),
        score=0.85,
    ),
    timeout_s=40,
    slow=True,
)
