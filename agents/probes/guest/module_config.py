"""The configuration of the guest's kernel modules: nvidia, nvidia_uvm, blacklists.

modprobe.d(5). It takes effect at the next load; guest.driver_params shows the values of the loaded driver.
"""

from agents.facts.platform import MODULE_CONFIG
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.module_files import BELONGS, SH, STARTS, TYPED, read_config


def parse(output: Output) -> Readings:
    return read_config(MODULE_CONFIG, output)


probe = Probe(
    __name__,
    title="Options of kernel modules",
    commands=(Command(SH),),
    supplies=(MODULE_CONFIG,),
    parse=parse,
    signature=Signature(TYPED, STARTS, BELONGS, any_machine=True),
)
