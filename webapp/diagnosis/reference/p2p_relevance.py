"""Can a difference between two states of a machine matter for peer-to-peer, and why.

Rules are tried in order; the first whose fact and name match answers. Sources: NVIDIA open kernel modules
590.48 and 595.45 (p2p_caps.c, chipset detection), QEMU hw/vfio/pci-quirks.c and listener.c, qemu-server
9.2.6, Linux drivers/iommu and vfio_iommu_type1, NCCL 2.30 src/graph; read in 2026.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Bears(StrEnum):
    """yes: it enters a gate of the ladder. time: not the gates, but how long a transfer takes."""

    YES = "yes"
    TIME = "time"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Relevance:
    """fact: the beginning of a fact id. name: what the differing part is called, as a whole. words: what
    the words that came or went are, sorted and with spaces; "" for any."""

    fact: str
    name: str
    bears: Bears
    why: str
    words: str = ""


_R = Relevance
RULES: tuple[Relevance, ...] = (
    _R("guest.p2p_", ".*", Bears.YES, "it is the driver’s own answer for that pair"),
    _R("guest.clique_capability", ".*", Bears.YES, "the driver takes the clique as the grant in a VM"),
    _R("vm.clique", ".*", Bears.YES, "the driver takes the clique as the grant in a VM"),
    _R("vm.args", ".*", Bears.YES, "the clique of a Proxmox VM stands in args"),
    _R("host.vms", r".*\bargs", Bears.YES, "the clique of a Proxmox VM stands in args"),
    _R("host.vms", r".*\bcpu", Bears.YES, "hidden=1 hides KVM, and the driver then refuses the clique"),
    _R("host.vms", r".*\bmachine", Bears.YES, "the address width of a virtual IOMMU can keep BARs from being "
       "mapped", words=r".*viommu.*"),
    _R("host.vms", r".*\bmachine", Bears.NO, "the board does not enter the driver’s decision"),
    _R("host.vms", r".*\bbios", Bears.NO, "firmware places BARs, and does not enter the decision"),
    _R("host.vms", r".*\bnuma.*", Bears.TIME, "virtual nodes decide where staging buffers lie"),
    _R("host.vms", r".*\bhugepages", Bears.TIME, "pages change what address translation costs"),
    _R("host.vms", r".*\bhostpci\d+", Bears.NO, "pcie=1 changes how the guest shows the device, and does "
       "not enter the driver’s decision", words=r"pcie=\d( pcie=\d)?"),
    _R("host.vms", r".*\bhostpci\d+", Bears.YES, "it decides which cards the VM gets, and x-vga=1 hides KVM"),
    _R("vm.cpu", ".*", Bears.YES, "KVM has to be visible, or the driver looks for another chipset"),
    _R("guest.kvm_visible", ".*", Bears.YES, "KVM has to be visible, or the driver refuses the clique"),
    _R("guest.virt_kind", ".*", Bears.YES, "outside a VM the driver judges the real chipset"),
    _R("guest.machine_type", ".*", Bears.NO, "the board does not enter the driver’s decision"),
    _R("guest.topology", ".*", Bears.YES, "NCCL uses P2P only up to a level of distance; in a VM the "
       "distances are those of the emulated bus"),
    _R("guest.worst_link", ".*", Bears.YES, "NCCL uses P2P only up to a level of distance"),
    _R("guest.driver_version", ".*", Bears.YES, "the driver decides, and its rules differ by version"),
    _R("guest.gpus", r".*\bdriver", Bears.YES, "the driver decides, and its rules differ by version"),
    _R("guest.gpus", r".*\bmig", Bears.YES, "a GPU in MIG mode has no peers"),
    _R("guest.gpus", r".*\bvirtualisation_mode", Bears.YES, "a vGPU has other rules than a whole card"),
    _R("guest.gpus", r".*\b(name|uuid)", Bears.YES, "mixed or other cards can have other peers"),
    _R("guest.gpus", r".*\b(pcie_\w+|power\w*|\w*clock\w*)", Bears.TIME, "speed, not permission"),
    _R("guest.gpus", r".*\bpci_address", Bears.NO, "the emulated bus was numbered anew; what stores "
       "addresses, like an NCCL topology file, has to follow"),
    _R("guest.gpus", r"GPU \d+", Bears.YES, "a card that is not there has no peers"),
    _R("guest.gpu_count", ".*", Bears.YES, "a card that is not there has no peers"),
    _R("guest.bar", ".*", Bears.YES, "peers write into each other’s BARs, which have to be mapped"),
    _R("guest.phys_bits", ".*", Bears.YES, "large BARs need the address width to be mapped"),
    _R("guest.fabric", ".*", Bears.YES, "NVLink peers need the fabric to be completed"),
    _R("guest.nvlinks", ".*", Bears.YES, "the NVLink path needs its links"),
    _R("guest.nccl_env", r"NCCL_(P2P|SHM|CUMEM|NVLS)\w*", Bears.YES, "NCCL’s choice of transport obeys it"),
    _R("guest.nccl", ".*", Bears.YES, "it is NCCL’s choice of transport, or what steers it"),
    _R("guest.kernel_cmdline", "pci", Bears.TIME, "it places BARs: needed to see all cards, no grant"),
    _R("guest.kernel_cmdline", ".*iommu.*", Bears.NO, "the guest’s IOMMU does not enter the decision"),
    _R("host.kernel_cmdline", "amd_iommu", Bears.NO, "on is no option of it, and it is on by default",
       words="on"),
    _R("host.kernel_cmdline", "iommu", Bears.NO, "VFIO devices are translated with pt as without",
       words="(on )?pt"),
    _R("host.kernel_cmdline", r"(amd_|intel_)?iommu", Bears.YES, "a VM gets cards only through an IOMMU"),
    _R("host.kernel_cmdline", "pcie_acs_override", Bears.NO, "it splits groups; P2P inside one VM does not "
       "need them merged, and isolation is lost"),
    _R("host.vfio_backend", ".*", Bears.YES, "iommufd maps no peer BARs without dma-buf"),
    _R("host.vfio_errors", ".*", Bears.YES, "a peer BAR that was not mapped cannot be written to"),
    _R("host.acs", ".*", Bears.TIME, "redirection sends peer traffic behind one switch up to the root"),
    _R("host.iommu_groups", ".*", Bears.NO, "groups do not forbid P2P inside one VM; new numbers break "
       "Proxmox mappings"),
    _R("host.iommu", ".*", Bears.NO, "VFIO devices are translated in domains of their own"),
    _R("host.gpu_paths", ".*", Bears.TIME, "where the cards hang decides how long the way is"),
    _R("host.pci_tree", ".*", Bears.TIME, "where the cards hang decides how long the way is"),
    _R("host.pci_mappings", ".*", Bears.YES, "it decides which cards the VM gets"),
    _R("host.pcie_links", ".*", Bears.TIME, "speed, not permission"),
    _R("guest.pcie_links", ".*", Bears.TIME, "speed, not permission; in a VM the emulated port’s"),
    _R("guest.numa", ".*", Bears.TIME, "nodes decide where staging buffers lie"),
    _R("guest.gpu_numa", ".*", Bears.TIME, "nodes decide where staging buffers lie"),
    _R("guest.shm", ".*", Bears.TIME, "without P2P NCCL passes data through it"),
    _R("guest.engine", ".*", Bears.TIME, "the engine’s layout decides what is sent, not who may"),
    _R("guest.software", ".*", Bears.TIME, "libraries decide how transfers are made"),
    _R("guest.cuda_version", ".*", Bears.NO, "the toolkit does not enter the driver’s decision"),
    _R("host.pve_version", ".*", Bears.UNKNOWN, "another QEMU or kernel may map BARs differently"),
)  # fmt: skip
NOT_LISTED = Relevance("", "", Bears.UNKNOWN, "not known to enter it, and not ruled out")


def relevance(fact_id: str, name: str, before: str | None, after: str | None) -> Relevance:
    """before, after: the text of the part, None where it is not there."""
    was, now = (set(re.split(r"[ ,;]+", text)) if text else set() for text in (before, after))
    words = " ".join(sorted(was ^ now))
    fits = (
        rule
        for rule in RULES
        if fact_id.startswith(rule.fact)
        and re.fullmatch(rule.name, name)
        and (not rule.words or re.fullmatch(rule.words, words))
    )
    return next(fits, NOT_LISTED)
