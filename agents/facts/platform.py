"""What kind of machine this is: virtualisation, firmware names, processor, memory, kernel."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agents.facts.fact import Fact


class MachineType(StrEnum):
    """The emulated board a QEMU guest sits on."""

    I440FX = "i440fx"
    Q35 = "q35"
    PXB = "pxb"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NumaNode:
    id: int
    cpus: str
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Iommu:
    """enabled: this machine sees an active IOMMU. default_domain: "Translated" or "Passthrough"."""

    enabled: bool | None = None
    vendor: str | None = None
    default_domain: str | None = None
    interrupt_remapping: bool | None = None
    units: int | None = None
    emulated: bool | None = None


@dataclass(frozen=True, slots=True)
class SharedMemory:
    size_mib: int
    used_mib: int | None = None


@dataclass(frozen=True, slots=True)
class ModuleOption:
    """One parameter of an `options` line: module with "_" for "-", e.g. vfio_pci, ids, 10de:2bb5."""

    module: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ModuleConfig:
    """modprobe's configuration for the next load; the loaded modules may differ.

    softdeps: (module, the rest of the line), e.g. ("nouveau", "pre: vfio-pci").
    """

    options: tuple[ModuleOption, ...] = ()
    blacklisted: tuple[str, ...] = ()
    softdeps: tuple[tuple[str, str], ...] = ()

    def value(self, module: str, name: str) -> str | None:
        """The last value, as modprobe takes it; None: not configured."""
        values = [o.value for o in self.options if (o.module, o.name) == (module, name)]
        return values[-1] if values else None


VIRT_KIND: Fact[str] = Fact("guest.virt_kind", "Virtualisation kind", str)
MACHINE_TYPE: Fact[MachineType] = Fact("guest.machine_type", "Emulated board", MachineType)
KVM_VISIBLE: Fact[bool] = Fact("guest.kvm_visible", "KVM signature visible to the guest", bool)
CONTAINER: Fact[str] = Fact("guest.container", "Container the probe ran in", str)
PRODUCT_UUID: Fact[str] = Fact("guest.product_uuid", "DMI product UUID", str)
DMI: Fact[str] = Fact("guest.dmi", "DMI vendor, product and board", str)
NUMA_NODES: Fact[tuple[NumaNode, ...]] = Fact("guest.numa_nodes", "NUMA nodes of the guest", tuple[NumaNode, ...])
DRIVER_VERSION: Fact[str] = Fact("guest.driver_version", "NVIDIA driver", str)
CUDA_VERSION: Fact[str] = Fact("guest.cuda_version", "CUDA version the driver offers", str)
KERNEL_CMDLINE: Fact[str] = Fact("guest.kernel_cmdline", "Kernel command line", str)
PHYS_BITS: Fact[int] = Fact("guest.phys_bits", "Physical address bits", int)
CPU_MODEL: Fact[str] = Fact("guest.cpu_model", "Processor", str)
MEMORY_MIB: Fact[int] = Fact("guest.memory_mib", "Memory", int)
SHM: Fact[SharedMemory] = Fact("guest.shm", "Shared memory (/dev/shm)", SharedMemory)
GUEST_IOMMU: Fact[Iommu] = Fact("guest.iommu", "IOMMU as the guest sees it", Iommu)
# "PYTHON VERSION", PYTHON as agents.interpreter reads it: a path, or docker:NAME:PATH in a container.
PYTHON_WITH_TORCH: Fact[str] = Fact("guest.python_with_torch", "Python that has torch", str)
MODULE_CONFIG: Fact[ModuleConfig] = Fact("guest.module_config", "Options of kernel modules", ModuleConfig)
HOST_MODULE_CONFIG: Fact[ModuleConfig] = Fact(
    "host.module_config", "Options of kernel modules on the host", ModuleConfig
)
HOST_NUMA_NODES: Fact[tuple[NumaNode, ...]] = Fact("host.numa_nodes", "NUMA nodes of the host", tuple[NumaNode, ...])
SOFTWARE: Fact[Mapping[str, str]] = Fact(
    "guest.software", "Versions of torch, engines and CUDA libraries", dict[str, str]
)
REFERENCE_TOOLS: Fact[Mapping[str, str]] = Fact(
    "guest.reference_tools", "Reference tools on the machine, with their paths", dict[str, str]
)
