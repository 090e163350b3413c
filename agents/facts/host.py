"""The hypervisor's side: platform, kernel, IOMMU groups, PCI tree, VFIO, boot loader, mappings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agents.facts.fact import Fact
from agents.facts.platform import Iommu


@dataclass(frozen=True, slots=True)
class Platform:
    vendor: str | None = None
    board: str | None = None
    cpu: str | None = None
    sockets: int | None = None


@dataclass(frozen=True, slots=True)
class IommuGroup:
    """devices: full PCI addresses (0000:01:00.0), sorted. names: lspci's text where the paste had it."""

    group: int
    devices: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PciNode:
    """One device of the host's PCI tree (`lspci -tv`). path: the bridges from the root complex down.

    root: the root complex ("0000:00"). name: lspci's text, may be empty with plain -t.
    """

    address: str
    root: str
    path: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class GpuPath:
    """The place of one GPU in the host's PCI tree. switch: the common bridge when it is not a root port."""

    pci_address: str
    root_complex: str
    root_port: str | None = None
    switch: str | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    link: str | None = None


class BootLoader(StrEnum):
    SYSTEMD_BOOT = "systemd-boot"
    GRUB_UEFI = "grub-uefi"
    GRUB_BIOS = "grub-bios"
    UNKNOWN = "unknown"


class VfioBackend(StrEnum):
    TYPE1 = "type1"
    IOMMUFD = "iommufd"


@dataclass(frozen=True, slots=True)
class VfioError:
    """code: the printed errno, negative. vm_id: the VM of the start log."""

    pci_address: str | None
    code: int | None
    text: str
    vm_id: int | None = None


@dataclass(frozen=True, slots=True)
class PciMapping:
    """One alternative device of a Proxmox resource mapping (/etc/pve/mapping/pci.cfg)."""

    mapping: str
    node: str | None
    path: str
    vendor_device: str | None = None
    iommu_group: int | None = None
    subsystem: str | None = None


@dataclass(frozen=True, slots=True)
class AcsPort:
    pci_address: str
    redirect: bool
    flags: str


@dataclass(frozen=True, slots=True)
class ConfiguredCmdline:
    """Kernel options set for the next boot, by file; None: the text does not show the file.

    The boot loader decides which one counts: systemd-boot reads /etc/kernel/cmdline, GRUB its own file after
    update-grub.
    """

    grub: str | None = None
    kernel_cmdline: str | None = None


@dataclass(frozen=True, slots=True)
class CpuGovernor:
    """governors: how many CPUs have each frequency governor. driver: the kernel's scaling driver, which decides what
    a governor's name means; None: unknown."""

    governors: Mapping[str, int]
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class HeldRegion:
    """A memory region of a device that a driver of the host holds, so that VFIO cannot map it; for a GPU usually the
    boot framebuffer. bar: 0 to 5."""

    pci_address: str
    bar: int


@dataclass(frozen=True, slots=True)
class LxcContainer:
    """One LXC container of Proxmox. gpu_devices: NVIDIA's device nodes in the container."""

    id: int | None = None
    name: str | None = None
    unprivileged: bool | None = None
    gpu_devices: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VmxConfig:
    """One VMware .vmx file. passthrough: host addresses of pciPassthruN, lower case.

    mmio_gib: pciPassthru.64bitMMIOSizeGB. allow_p2p and relax_acs None: the file does not set them.
    """

    name: str | None = None
    uuid: str | None = None
    firmware: str | None = None
    memory_mib: int | None = None
    passthrough: tuple[str, ...] = ()
    use_64bit_mmio: bool | None = None
    mmio_gib: int | None = None
    allow_p2p: bool | None = None
    relax_acs: bool | None = None
    hypervisor_hidden: bool | None = None


PLATFORM: Fact[Platform] = Fact("host.platform", "Host platform", Platform)
HOST_CMDLINE: Fact[str] = Fact("host.kernel_cmdline", "Host kernel command line", str)
HOST_IOMMU: Fact[Iommu] = Fact("host.iommu", "Host IOMMU", Iommu)
IOMMU_GROUPS: Fact[tuple[IommuGroup, ...]] = Fact("host.iommu_groups", "IOMMU groups", tuple[IommuGroup, ...])
PCI_TREE: Fact[tuple[PciNode, ...]] = Fact("host.pci_tree", "Host PCI tree", tuple[PciNode, ...])
GUEST_PCI_TREE: Fact[tuple[PciNode, ...]] = Fact(
    "guest.pci_tree", "Guest PCI tree, emulated in a VM", tuple[PciNode, ...]
)
GPU_PATHS: Fact[tuple[GpuPath, ...]] = Fact("host.gpu_paths", "Physical path of each GPU", tuple[GpuPath, ...])
ACS: Fact[tuple[AcsPort, ...]] = Fact("host.acs", "ACS on the bridges", tuple[AcsPort, ...])
VFIO_BACKEND: Fact[VfioBackend] = Fact("host.vfio_backend", "VFIO backend", VfioBackend)
VFIO_ERRORS: Fact[tuple[VfioError, ...]] = Fact(
    "host.vfio_errors", "VFIO mapping errors in the VM’s start log", tuple[VfioError, ...]
)
HELD_REGIONS: Fact[tuple[HeldRegion, ...]] = Fact(
    "host.held_regions", "Device regions the host itself holds", tuple[HeldRegion, ...]
)
BOOT_LOADER: Fact[BootLoader] = Fact("host.boot_loader", "Boot loader", BootLoader)
PVE_VERSION: Fact[str] = Fact("host.pve_version", "Proxmox VE version", str)
PCI_MAPPINGS: Fact[tuple[PciMapping, ...]] = Fact("host.pci_mappings", "Proxmox PCI mappings", tuple[PciMapping, ...])
CONFIGURED_CMDLINE: Fact[ConfiguredCmdline] = Fact(
    "host.configured_cmdline", "Kernel options set for the next boot", ConfiguredCmdline
)
CPU_GOVERNOR: Fact[CpuGovernor] = Fact("host.cpu_governor", "Frequency governor of the host", CpuGovernor)
LXC: Fact[tuple[LxcContainer, ...]] = Fact("host.lxc", "LXC containers", tuple[LxcContainer, ...])
VMX: Fact[tuple[VmxConfig, ...]] = Fact("host.vmx", "VMware VM configurations", tuple[VmxConfig, ...])
