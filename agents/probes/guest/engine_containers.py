"""Containers that run an engine: shared memory, IPC, GPUs and environment variables.

docker inspect(1), podman-inspect(1). A private IPC namespace has a /dev/shm of 64 MiB unless --shm-size raises it,
too little for many NCCL ranks. Secrets in the environment stay on the machine.
"""

from agents.facts.nccl import ENGINE_CONTAINERS
from agents.parsing import containers
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no container is there"
# Command lines stay on the machine, and so do the values of irrelevant variables.
_SH = rf"""tool=docker
command -v $tool >/dev/null || tool=podman; command -v $tool >/dev/null || exit 127
ids=$($tool ps -aq 2>&1) || {{ echo "$ids" >&2; exit 1; }}
[ "$ids" ] || {{ echo '{_NONE}'; exit 0; }}
$tool inspect $ids | sed -E -e '/"(Args|Cmd|Entrypoint|CreateCommand)": \[$/,/^ *\]/d' \
  -e '/"(NCCL_|CUDA_|NVIDIA_|VLLM_|SGLANG_|SGL_|TORCH_|OMP_|FLASHINFER_)[A-Z0-9_]*=/b' \
  -e 's/^( *"[A-Za-z_][A-Za-z0-9_]*=)[^"]*/\1***/'"""


def parse(output: Output) -> Readings:
    engines, lines, missing = containers.parse(output.stdout)
    if engines:
        cut = ("the end of the output",) if output.truncated else ()
        return (ENGINE_CONTAINERS.known(engines, lines=lines, missing=(*missing, *cut)),)
    if output.tool_missing:
        return (ENGINE_CONTAINERS.unsupported("neither docker nor podman is installed"),)
    if output.refused or "permission denied" in output.stderr:
        return (ENGINE_CONTAINERS.not_run("asking the container runtime was refused"),)
    if "Cannot connect to the Docker daemon" in f"{output.stdout[-2000:]}{output.stderr[-2000:]}":
        return (ENGINE_CONTAINERS.not_run("the container runtime does not answer"),)
    if output.truncated or output.timed_out:
        return (ENGINE_CONTAINERS.unreadable("the output is cut"),)
    if _NONE in output.stdout or lines:
        return (ENGINE_CONTAINERS.absent("no container runs an engine or has GPUs", lines=lines),)
    if containers.is_inspect(output.stdout) and output.alternative < 0:
        return (ENGINE_CONTAINERS.unreadable("no whole answer about an engine's container"),)
    return (ENGINE_CONTAINERS.unreadable("no container in the output"),)


probe = Probe(
    __name__,
    title="Containers with GPUs",
    commands=(Command(_SH, needs=("sed",), root=True),),
    supplies=(ENGINE_CONTAINERS,),
    parse=parse,
    signature=Signature(
        typed=r"(?:docker|podman)\s+(?:container\s+)?(?:inspect|ps|ls)\b",
        starts=(r"^\[\s*$", r"^\[?\{\"Id\":\"[0-9a-f]{64}\"", r"^CONTAINER ID\s+IMAGE\s+COMMAND"),
        belongs=r"^\s*[\]\[{}\"\d-]|^\s*(?:true|false|null)|^[0-9a-f]{12}\s",
    ),
    timeout_s=20,
    cap_kib=2048,
    slow=True,
    root_adds="the container runtime, which answers root and its own group only",
    left_out="command lines, and the values of variables that steer neither GPUs nor engines",
)
