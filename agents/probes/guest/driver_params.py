"""The parameters of the loaded NVIDIA driver.

/proc/driver/nvidia/params (NVIDIA open kernel modules 580, nv-procfs.c). RegistryDwords holds the value from the
module's options; /sys/module/nvidia/parameters shows it empty even when it is set.
"""

from agents.facts.gpu import DRIVER_PARAMS
from agents.parsing import driver_module
from agents.probe import Command, Output, Probe, Readings, Signature


def parse(output: Output) -> Readings:
    answer = driver_module.params(output.stdout)
    if answer:
        values, lines = answer
        whole = "RegistryDwords" in values.values
        missing = () if whole else ("RegistryDwords: this is a part of the parameters",)
        return (DRIVER_PARAMS.known(values, lines=lines, missing=missing),)
    if output.tool_missing:
        return (DRIVER_PARAMS.unsupported("the NVIDIA driver is not loaded"),)
    if output.refused:
        return (DRIVER_PARAMS.not_run("reading the driver's parameters was refused"),)
    if output.stdout.strip():
        return (DRIVER_PARAMS.unreadable("no parameter of the driver in the output"),)
    return (DRIVER_PARAMS.not_run("no output"),)


probe = Probe(
    __name__,
    title="Driver parameters",
    commands=(Command("cat /proc/driver/nvidia/params || exit 127"),),
    supplies=(DRIVER_PARAMS,),
    parse=parse,
    signature=Signature(
        typed=r"/proc/driver/nvidia/params",
        starts=(
            r"^ResmanDebugLevel: \d",
            r"^(?:RegistryDwords|EnableResizableBar|EnableGpuFirmware|OpenRmEnableUnsupportedGpus): ",
        ),
        belongs=r"^[A-Z][A-Za-z0-9]{2,60}: (?:\d+|\"[^\"]*\")$",
    ),
)
