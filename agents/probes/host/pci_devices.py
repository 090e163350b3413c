"""The host's NVIDIA display functions, and the driver that holds each: vfio-pci for passthrough.

lspci(8) -nnk, or sysfs. A VM cannot get a GPU that another driver holds.
"""

from dataclasses import replace

from agents.facts.gpu import HOST_PCI_GPUS
from agents.parsing import lspci, sysfs_pci
from agents.probe import Command, Output, Probe, Readings
from agents.probes.guest import pci_devices
from agents.probes.guest.pci_devices import SYSFS, pci_gpu
from agents.probes.machine_board import whole_bus


def parse(output: Output) -> Readings:
    listed = lspci.parse(output.stdout)
    listed = listed or tuple(device.listed for device in sysfs_pci.parse(output.stdout))
    gpus = lspci.gpus(listed)
    pasted = output.alternative < 0
    if gpus:
        missing = ("the end of the list",) if output.truncated else ()
        if pasted and not whole_bus(listed):
            missing = (*missing, "other devices: the text may show only some")
        lines = tuple(device.line for device in gpus)
        return (HOST_PCI_GPUS.known(tuple(map(pci_gpu, gpus)), lines=lines, missing=missing),)
    if output.tool_missing:
        return (HOST_PCI_GPUS.unsupported("lspci is not installed and sysfs shows no PCI"),)
    if not listed:
        return (HOST_PCI_GPUS.unreadable("no line is a PCI device"),)
    if output.truncated or (pasted and not whole_bus(listed)):
        return (HOST_PCI_GPUS.not_run("no NVIDIA display function in this part of the bus"),)
    return (HOST_PCI_GPUS.absent(f"no NVIDIA display function among {len(listed)} devices"),)


probe = Probe(
    __name__,
    title="GPUs on the host bus",
    commands=(Command("lspci -Dnnk", needs=("lspci",)), SYSFS),
    supplies=(HOST_PCI_GPUS,),
    parse=parse,
    signature=replace(pci_devices.probe.signature, between=("host.acs", "host.pcie_links", "host.iommu_groups")),
    timeout_s=30,
)
