"""The PCI Express link of each GPU, now and at most, as the guest sees it.

sysfs-bus-pci (Linux). A passed-through GPU shows its own registers, so its figures are the real link's; the emulated
port above it (QEMU pcie-root-port: 16 GT/s x32) is no link at all and is left out. Behind i440FX the kernel prints
"Unknown" and width 0 or 63: then the link is unknown. An idle GPU lowers its speed.
"""

from agents.facts.gpu import PCIE_LINKS
from agents.probe import Command, Output, Probe, Readings
from agents.probes.link_reading import SIGNATURE, SYSFS, read_links


def parse(output: Output) -> Readings:
    return read_links(PCIE_LINKS, output, "the GPUs show no link: they sit on an emulated bus")


probe = Probe(
    __name__,
    title="PCIe links of the GPUs",
    commands=(Command(SYSFS),),
    supplies=(PCIE_LINKS,),
    parse=parse,
    signature=SIGNATURE,
)
