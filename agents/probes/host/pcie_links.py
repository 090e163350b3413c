"""The PCI Express link of each GPU on the host, now and at most: fewer lanes than possible is a fault.

lspci -vv (LnkCap, LnkSta), as root, or sysfs. A device that vfio-pci holds without a running VM sleeps and may show
2.5 GT/s; its lanes stay.
"""

from agents.facts.gpu import HOST_PCIE_LINKS
from agents.probe import Command, Output, Probe, Readings
from agents.probes.link_reading import SIGNATURE, SYSFS, read_links


def parse(output: Output) -> Readings:
    return read_links(HOST_PCIE_LINKS, output, "the GPUs show no link")


probe = Probe(
    __name__,
    title="PCIe links of the GPUs",
    commands=(Command(SYSFS),),
    supplies=(HOST_PCIE_LINKS,),
    parse=parse,
    signature=SIGNATURE,
)
