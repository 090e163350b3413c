"""The configuration of the host's kernel modules: the devices that vfio-pci takes, and the blacklist.

modprobe.d(5); Linux drivers/vfio (ids, disable_idle_d3, allow_unsafe_interrupts). It takes effect at the next boot,
on Proxmox only after update-initramfs.
"""

from agents.facts.platform import HOST_MODULE_CONFIG
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.module_files import BELONGS, SH, STARTS, TYPED, read_config


def parse(output: Output) -> Readings:
    return read_config(HOST_MODULE_CONFIG, output)


probe = Probe(
    __name__,
    title="Options of kernel modules",
    commands=(Command(SH),),
    supplies=(HOST_MODULE_CONFIG,),
    parse=parse,
    signature=Signature(TYPED, STARTS, BELONGS, any_machine=True),
)
