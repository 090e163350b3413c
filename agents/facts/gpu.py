"""The GPUs of a guest: inventory, processes, address space, errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.facts.fact import Fact


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver lists it. None: the output did not say, or said [N/A].

    lost: the driver lists it but cannot reach it (ERR!, "Unable to determine the device handle").
    utilisation_percent is the share of time in which any kernel ran, not how busy the chip was.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    vram_mib: int | None = None
    memory_used_mib: int | None = None
    driver: str | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    temperature_celsius: int | None = None
    utilisation_percent: int | None = None
    memory_utilisation_percent: int | None = None
    mig: bool | None = None
    virtualisation_mode: str | None = None
    persistence: bool | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PciGpu:
    """One NVIDIA display-class function as the PCI bus shows it. revision "ff": fallen off the bus."""

    pci_address: str
    vendor_device: str | None = None
    name: str | None = None
    revision: str | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    gpu_index: int | None
    pid: int
    name: str
    memory_used_mib: int | None = None


@dataclass(frozen=True, slots=True)
class GpuNuma:
    """numa_node None: the device reports no node (-1, N/A), the usual case in a VM."""

    gpu: str
    numa_node: int | None


@dataclass(frozen=True, slots=True)
class Clique:
    """The GPUDirect clique capability of one GPU, looked for in its PCI config space.

    clique_id None: the capability is not there, or, if `present`, plain `lspci -vv` shows it without its id. offset:
    its place (0xc8 or 0xd4).
    """

    pci_address: str
    clique_id: int | None
    offset: int | None = None

    @property
    def present(self) -> bool:
        return self.offset is not None


@dataclass(frozen=True, slots=True)
class Bar:
    """size_mib 0: the firmware gave this region no address."""

    pci_address: str
    bar: int
    size_mib: int
    address: str | None = None


@dataclass(frozen=True, slots=True)
class BarFailure:
    pci_address: str | None
    bar: int | None
    text: str


@dataclass(frozen=True, slots=True)
class XidEvent:
    pci_address: str | None
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Fabric:
    """NVSwitch fabric state. Its clique id is unrelated to the GPUDirect clique.

    With several GPUs: of the least ready one. health: the complaints of the health section, or "Healthy".
    """

    state: str
    status: str | None = None
    health: str | None = None


@dataclass(frozen=True, slots=True)
class NvLinks:
    """The NVLinks of one GPU ("GPU0") by whether they carry traffic."""

    gpu: str
    active: int
    inactive: int


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The PCI Express link of one device: generation (1 to 7) and lanes, now and at most.

    None: the device shows no link, as behind an emulated bus. pci_address None: the text does not name the device. An
    idle GPU lowers its generation to save power, never its lanes.
    """

    pci_address: str | None
    gen: int | None = None
    width: int | None = None
    gen_max: int | None = None
    width_max: int | None = None

    @property
    def narrow(self) -> bool:
        """Fewer lanes than both ends could have."""
        return None not in (self.width, self.width_max) and (self.width or 0) < (self.width_max or 0)


@dataclass(frozen=True, slots=True)
class DriverParams:
    """The parameters of the loaded NVIDIA module (/proc/driver/nvidia/params).

    values: every line of the file. registry: the keys of RegistryDwords, e.g. {"ForceP2P": "0x11"}.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    registry: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriverModule:
    """The NVIDIA kernel module. open: NVIDIA's open modules or the proprietary ones; None: unknown.

    dkms: "nvidia/580.95.05, 6.8.0-87-generic, x86_64: installed" as printed. loaded: the loaded modules of its family
    (nvidia, nvidia_uvm, nvidia_peermem, gdrdrv); None: the text does not list modules.
    """

    version: str | None = None
    open: bool | None = None
    dkms: tuple[str, ...] = ()
    loaded: tuple[str, ...] | None = None


GPUS: Fact[tuple[Gpu, ...]] = Fact("guest.gpus", "GPUs the driver lists", tuple[Gpu, ...])
GPU_COUNT_SMI: Fact[int] = Fact("guest.gpu_count_smi", "GPUs nvidia-smi lists", int)
GPU_COUNT_PCI: Fact[int] = Fact("guest.gpu_count_pci", "NVIDIA GPUs on the PCI bus", int)
HOST_PCI_GPUS: Fact[tuple[PciGpu, ...]] = Fact("host.pci_gpus", "NVIDIA GPUs on the host’s PCI bus", tuple[PciGpu, ...])
PCI_GPUS: Fact[tuple[PciGpu, ...]] = Fact("guest.pci_gpus", "NVIDIA GPUs as the PCI bus shows them", tuple[PciGpu, ...])
GPU_PROCESSES: Fact[tuple[GpuProcess, ...]] = Fact(
    "guest.gpu_processes", "Processes on the GPUs", tuple[GpuProcess, ...]
)
GPU_NUMA: Fact[tuple[GpuNuma, ...]] = Fact("guest.gpu_numa", "NUMA node of each GPU", tuple[GpuNuma, ...])
CLIQUE_CAPABILITY: Fact[tuple[Clique, ...]] = Fact(
    "guest.clique_capability", "GPUDirect clique capability", tuple[Clique, ...]
)
BARS: Fact[tuple[Bar, ...]] = Fact("guest.bars", "GPU address regions (BARs)", tuple[Bar, ...])
BAR_FAILURES: Fact[tuple[BarFailure, ...]] = Fact(
    "guest.bar_failures", "Address regions that got no space", tuple[BarFailure, ...]
)
XID_EVENTS: Fact[tuple[XidEvent, ...]] = Fact("guest.xid_events", "GPU error events (Xid)", tuple[XidEvent, ...])
FABRIC: Fact[Fabric] = Fact("guest.fabric", "NVSwitch fabric state", Fabric)
NVLINKS: Fact[tuple[NvLinks, ...]] = Fact("guest.nvlinks", "NVLinks of each GPU", tuple[NvLinks, ...])
PCIE_LINKS: Fact[tuple[PcieLink, ...]] = Fact(
    "guest.pcie_links", "PCIe link of each GPU as the guest sees it", tuple[PcieLink, ...]
)
HOST_PCIE_LINKS: Fact[tuple[PcieLink, ...]] = Fact("host.pcie_links", "PCIe link of each GPU", tuple[PcieLink, ...])
DRIVER_PARAMS: Fact[DriverParams] = Fact("guest.driver_params", "Parameters of the loaded driver", DriverParams)
DRIVER_MODULE: Fact[DriverModule] = Fact("guest.driver_module", "NVIDIA kernel module", DriverModule)
