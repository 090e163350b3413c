"""The loaded NVIDIA kernel module: open or proprietary, its version, and its DKMS builds.

/proc/driver/nvidia/version, modinfo(8), dkms(8), lsmod(8). Blackwell GPUs need the open modules.
"""

from agents.facts.gpu import DRIVER_MODULE
from agents.parsing import driver_module
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = """cat /proc/driver/nvidia/version 2>/dev/null
modinfo nvidia 2>/dev/null | grep -E "^(version|license):"
dkms status 2>/dev/null | grep -i nvidia
[ -r /proc/modules ] && echo "Module Size Used by" && grep -E "^(nvidia|gdrdrv|nv_peer|nouveau)" /proc/modules
exit 0"""


def parse(output: Output) -> Readings:
    answer = driver_module.parse(output.stdout)
    if answer is None:
        if output.tool_missing:
            return (DRIVER_MODULE.unsupported("nothing here tells of kernel modules"),)
        if output.refused:
            return (DRIVER_MODULE.not_run("reading the modules was refused"),)
        if output.alternative >= 0 and not output.stdout.strip():
            return (DRIVER_MODULE.not_run("this kernel shows neither a module nor a list of them"),)
        return (DRIVER_MODULE.unreadable("no line about a kernel module of NVIDIA"),)
    module, lines = answer
    if module.version is None and not module.loaded and not module.dkms and module.open is None:
        return (DRIVER_MODULE.absent("no NVIDIA module is loaded or installed", lines=lines),)
    missing = [] if module.version else ["the version of the loaded module"]
    if module.open is None:
        missing.append("whether it is the open module")
    return (DRIVER_MODULE.known(module, lines=lines, missing=tuple(missing)),)


probe = Probe(
    __name__,
    title="NVIDIA kernel module",
    commands=(Command(_SH),),
    supplies=(DRIVER_MODULE,),
    parse=parse,
    signature=Signature(
        typed=r"dkms\s+status|modinfo\s+(?:-\S+\s+)*nvidia\b|/proc/driver/nvidia/version|lsmod\b.*nvidia",
        starts=(
            r"^nvidia[\w-]*(?:/|, ?)\d{3}\.[\d.]+, .+: (?:installed|built|added)",
            r"^filename:\s+/lib/modules/\S+/nvidia\.ko",
            r"^license:\s+(?:Dual MIT/GPL|NVIDIA)$",
            r"^nvidia(?:_\w+)?\s+\d{4,}\s+\d+",
            r"^NVRM version: ",
        ),
        belongs=r"^nvidia|^GCC version|^[a-z]\w{2,20}:\s|^(?:gdrdrv|nouveau|drm|video|ecc)\b|^Module\s",
        score=0.8,
    ),
)
