"""The reading of the emulated board, shared by the probes that see PCI devices."""

from collections.abc import Sequence

from agents.facts import Reading
from agents.facts.platform import MACHINE_TYPE, MachineType
from agents.parsing.lspci import Device

_I440FX = ("8086:1237", "440FX - 82441FX")
_Q35 = ("8086:29c0", "82G33/G31/P35/P31 Express DRAM")
_PXB = ("1b36:0009", "1b36:000b", "QEMU PCI Expander", "QEMU PCIe Expander")


def whole_bus(devices: Sequence[Device]) -> bool:
    """Whether the list starts at the bus's first function and so is no excerpt."""
    return any(device.address.endswith(":00:00.0") for device in devices)


def read_board(devices: Sequence[Device]) -> Reading[MachineType]:
    """Names the board by its host bridge: i440FX 8086:1237, Q35 8086:29c0, PCI expander 1b36:0009 and
    1b36:000b (QEMU hw/pci-host, hw/pci-bridge). 8086:29c0 is also a real board of 2007, so it counts
    only beside a device that only hypervisors make; an expander counts where no base bridge shows.
    """
    virtual = any(device.is_virtual for device in devices)
    i440fx, q35, pxb = (_find_device(devices, marks) for marks in (_I440FX, _Q35, _PXB))
    if i440fx:
        return MACHINE_TYPE.known(MachineType.I440FX, lines=(i440fx.line,))
    if q35 and virtual:
        return MACHINE_TYPE.known(MachineType.Q35, lines=(q35.line,))
    if pxb:
        return MACHINE_TYPE.known(MachineType.PXB, lines=(pxb.line,))
    if not whole_bus(devices) or q35:
        return MACHINE_TYPE.not_run("these devices do not tell the board")
    if virtual:
        first = next(device for device in devices if device.address.endswith(":00:00.0"))
        return MACHINE_TYPE.known(MachineType.OTHER, lines=(first.line,))
    return MACHINE_TYPE.absent("no device that only a hypervisor makes")


def _find_device(devices: Sequence[Device], marks: tuple[str, ...]) -> Device | None:
    return next((d for d in devices if d.vendor_device in marks or any(m in d.name for m in marks)), None)
