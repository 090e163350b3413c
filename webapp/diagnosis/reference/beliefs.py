"""Common beliefs about P2P in virtual machines that are wrong, and what is right.

Each is recognised by regular expressions (case ignored) in the operator's words, a kernel command
line, a VM configuration ("key: value" lines) or NCCL variables ("NAME=value" lines).
"""

from dataclasses import dataclass

DRIVER = "NVIDIA open kernel modules 595.45.04, p2p_caps.c"
QEMU_SERVER = "Proxmox qemu-server 9.2.6, PCI.pm"
NCCL = "NCCL 2.30.7, src/misc/param.cc and src/graph/paths.cc"


@dataclass(frozen=True, slots=True)
class Belief:
    """Patterns are empty where the belief is not looked for."""

    id: str
    belief: str
    correct: str
    source: str
    notes: str = ""
    host_cmdline: str = ""
    guest_cmdline: str = ""
    vm: str = ""
    nccl: str = ""


BELIEFS: tuple[Belief, ...] = (
    Belief(
        "amd_iommu_on",
        "amd_iommu=on has to be set on an AMD host.",
        "The kernel knows no such option and ignores it; the AMD IOMMU is on by default when the "
        "firmware enables it. Passthrough works, so it is on.",
        "Linux kernel drivers/iommu/amd/init.c",
        notes=r"amd_iommu\s*=\s*on",
        host_cmdline=r"\bamd_iommu=on\b",
        guest_cmdline=r"\bamd_iommu=on\b",
    ),
    Belief(
        "iommu_pt",
        "iommu=pt makes DMA of the VM’s GPUs faster.",
        "It sets the default domain of devices that host drivers use. A VFIO device sits in its own "
        "translated domain with or without it.",
        "Linux kernel drivers/iommu/iommu.c",
        notes=r"\biommu\s*=\s*pt\b",
        host_cmdline=r"\biommu=pt\b",
    ),
    Belief(
        "guest_without_iommu",
        "The guest has no IOMMU, and that is a problem.",
        "A guest normally has none; an emulated one would not help P2P.",
        "Proxmox VE administration guide, PCI passthrough",
        notes=r"\bno (?:v?iommu|amd-vi|dmar)\b|iommu[^.\n]{0,30}(?:missing|not (?:found|enabled|present))",
    ),
    Belief(
        "acs_override",
        "The ACS override groups the GPUs together or enables P2P.",
        "It makes the kernel assume isolation that is not there, so it splits groups; it merges none, "
        "changes no hardware and enables no P2P.",
        "Proxmox kernel 7.0, patch 0004 (pcie_acs_override)",
        notes=r"acs[ _-]?override",
        host_cmdline=r"\bpcie_acs_override=",
    ),
    Belief(
        "acs_off_in_firmware",
        "ACS has to be off in the firmware for P2P in a VM.",
        "ACS does not enter the driver’s answer. Switching it off renumbers IOMMU groups, and a mapping "
        "that names its group then stops the VM from starting.",
        f"{DRIVER}; Proxmox pve-guest-common, Mapping/PCI.pm",
        notes=r"disabl\w*[^.\n]{0,15}\bACS\b|\bACS\b[^.\n]{0,20}\b(?:off|disabled)\b|\bACS\b[^.\n]{0,15}BIOS",
    ),
    Belief(
        "separate_groups",
        "Separate IOMMU groups or root complexes make P2P impossible.",
        "All groups of one VM share one container and one domain, and AMD Zen forwards between root "
        "ports and root complexes.",
        "Linux kernel drivers/vfio/vfio_iommu_type1.c and drivers/pci/p2pdma.c",
        notes=r"(?:separate|different|own|isolated|eight|8)\s+(?:pcie?\s+)?(?:iommu groups?|root complex)",
    ),
    Belief(
        "not_even_on_bare_metal",
        "With one GPU on each root complex there is no P2P on bare metal either.",
        "Boards of this kind show P2P on bare metal at 53–56 GB/s and under 0.5 µs; a verified copy "
        "without a VM decides for this one.",
        "Linux kernel drivers/pci/p2pdma.c; local-inference-lab/rtx6kpro, hardware, 2026",
        notes=r"even (?:on|with) bare[ -]metal",
    ),
    Belief(
        "dummy_host_bridge",
        "The PCIe Dummy Host Bridge isolates the slots.",
        "It is a placeholder function on every system of this processor family and says nothing of P2P.",
        "Linux pci.ids 1022:153d; AMD Turin processors",
        notes=r"dummy host bridge",
    ),
    Belief(
        "emulated_data_path",
        "GPU traffic crosses QEMU’s emulated PCIe and pays a virtualisation tax.",
        "Emulation is about configuration space; data move in hardware. Bare metal with P2P off gives "
        "the same copy figures.",
        "QEMU hw/vfio/pci.c (BARs are mapped into the guest)",
        notes=r"emulated pcie?|virtuali[sz]ation (?:tax|overhead|latency|penalty)",
    ),
    Belief(
        "pcie_flag",
        "pcie=1 lets the driver see PCIe and so turns NS into OK.",
        "NS is decided before any PCIe capability is read. pcie=1 without q35 keeps the VM from "
        "starting (q35 machine model is not enabled).",
        f"{QEMU_SERVER}; {DRIVER}",
        notes=r"\bpcie\s*=\s*1\b",
    ),
    Belief(
        "q35_fixes_ns",
        "Moving to q35 turns NS into OK.",
        "The machine type does not enter the driver’s answer in a KVM guest; the GPUDirect clique does. "
        "q35 and pcie=1 belong together and are optional.",
        DRIVER,
        notes=r"\bq35\b[^.\n]{0,60}\b(?:p2p|NS|peer|fix|enable)|\b(?:p2p|NS|peer)\b[^.\n]{0,60}\bq35\b",
    ),
    Belief(
        "low_risk_restart",
        "Moving to q35 is low risk, it is only a restart of the VM.",
        "It changes PCI addresses and usually the network card’s name, so the guest can come up without "
        "network. Fix the name by MAC address first.",
        "Proxmox qemu-server 9.2.6, PCI.pm (get_pci_addr_map)",
        notes=r"low[ -]risk|only (?:a |needs a )?(?:VM )?restart",
    ),
    Belief(
        "nccl_env_while_running",
        "NCCL variables can be applied to the running server.",
        "NCCL reads them once, when a communicator is made; the server has to be restarted.",
        NCCL,
        notes=r"NCCL[^.\n]{0,80}(?:running (?:process|server)|without (?:a )?restart|on the fly)",
    ),
    Belief(
        "packet_hop_bounce",
        "PHB means Packet Hop Bounce.",
        "PHB is PCIe Host Bridge: the path crosses the processor’s host bridge.",
        "nvidia-smi manual, topo -m legend",
        notes=r"packet hop",
    ),
    Belief(
        "p2p_level_costs",
        "NCCL_P2P_LEVEL=PHB without P2P costs failed attempts.",
        "NCCL asks the driver once at start and costs nothing later. The setting is needed once P2P is "
        "allowed: the default level does not reach across host bridges.",
        NCCL,
        notes=r"NCCL_P2P_LEVEL[^\n]{0,120}(?:fail|attempt|handshake|overhead|cost|remove|unset)",
    ),
    Belief(
        "peermem",
        "nvidia-peermem (nv_peer_mem) gives P2P between GPUs in software.",
        "It lets a network card reach GPU memory (GPUDirect RDMA) and is not used between GPUs.",
        "NVIDIA open kernel modules 595.45.04, kernel-open/nvidia-peermem",
        notes=r"nv_peer_mem|nvidia[-_]peermem",
    ),
    Belief(
        "unsafe_interrupts",
        "allow_unsafe_interrupts works around missing P2P.",
        "It is for platforms without interrupt remapping, lets a guest inject interrupts into the host, "
        "and does nothing for P2P.",
        "Linux kernel drivers/vfio/vfio_iommu_type1.c",
        notes=r"allow_unsafe_interrupts",
        host_cmdline=r"allow_unsafe_interrupts=(?:1|y|Y)",
    ),
    Belief(
        "one_all_reduce_per_layer",
        "Tensor parallelism costs one all-reduce per layer.",
        "It costs two: after the attention output and after the MLP or experts.",
        "Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053)",
        notes=r"\b(?:one|1|a single) all-?\s?reduce (?:per|for each|a) layer",
    ),
    Belief(
        "copy_is_all_reduce",
        "The time of a pairwise copy is the latency of an all-reduce.",
        "A ring over n GPUs has 2(n-1) dependent steps, and a host-synchronised copy takes 14 to 17 µs "
        "even inside one GPU.",
        "NCCL 2.30.7, src/graph/tuning.cc",
        notes=r"all-?\s?reduce latency|\d+ ?Ki?B all-?\s?reduce",
    ),
    Belief(
        "sub_microsecond_speedup",
        "P2P’s sub-microsecond latency against a 10 µs copy is the speed-up of the engine.",
        "It is the latency of one write between two GPUs; an all-reduce over eight with P2P still takes 24–57 µs.",
        "NCCL 2.30.7, src/graph/tuning.cc; local-inference-lab/rtx6kpro, 2026",
        notes=r"sub-?\s?microsecond|\b0\.[3-5]\d?\s?(?:us|µs|μs)\b",
    ),
    Belief(
        "p2p_doubles_throughput",
        "P2P doubles or triples the throughput.",
        "Public comparisons on eight PCIe GPUs lie between −50 % and +48 %, most of them within 15 %. "
        "The bound here says what communication can take at most.",
        "local-inference-lab/rtx6kpro, benchmarks, 2026",
        notes=r"\b(?:double|triple)\b"
        r"|\b[23](?:\.\d)?\s?[x×](?!\w)(?!\s*(?:\d|RTX|GPU|NVIDIA|[AHBL]\d))",
    ),
    Belief(
        "same_gpu_baseline",
        "A copy inside one GPU is the baseline for copies between GPUs.",
        "The baseline is the PCIe link, 63 GB/s raw at Gen5 x16, of which P2P reaches 53–56. At a few "
        "MB a copy inside one GPU runs from its L2 cache.",
        "PCI Express 5.0 base specification; CUDA programming guide",
        notes=r"\b9\d(?:\.\d)?\s?%[^.\n]{0,40}(?:loss|reduction|lower|slower|less|drop)"
        r"|(?:same|inside|within|one GPU)[^.\n]{0,60}\b\d{4}(?:\.\d+)?\s?GB/s"
        r"|\b\d{4}(?:\.\d+)?\s?GB/s[^.\n]{0,40}(?:same|inside|within|one GPU)",
    ),
    Belief(
        "link_rate_as_goal",
        "P2P over PCIe Gen5 x16 gives 64 GB/s.",
        "63 GB/s is the raw link; 53–56 GB/s is what copies reach.",
        "PCI Express 5.0 base specification",
        notes=r"\b6[34]\s?GB/s",
    ),
    Belief(
        "total_is_speed",
        "A benchmark’s total tokens a second are the speed of generation.",
        "The total counts input and output tokens; only output tokens come out of decode steps, so "
        "only they tell the time of a step.",
        "vLLM and SGLang bench_serving (total token throughput)",
        notes=r"total tok(?:en)?s?(?: throughput|/s)",
    ),
    Belief(
        "utilisation_is_compute",
        "100 % utilisation at half the power shows that the GPUs are compute-bound.",
        "Utilisation is the share of time in which any kernel ran, waiting kernels included; 50–60 % of "
        "the power limit is usual for decode. A profile decides.",
        "NVML API reference, nvmlUtilization_t",
        notes=r"compute[ -]?bound",
    ),
    Belief(
        "utilisation_is_bandwidth",
        "utilization.memory shows how much of the memory bandwidth is used.",
        "It is the share of time in which memory was read or written, not of its bandwidth.",
        "NVML API reference, nvmlUtilization_t",
        notes=r"(?:memory bandwidth|utilization\.memory|mem(?:ory)? util\w*)[^.\n]{0,30}\d\s?%"
        r"|\d\s?%\s*(?:of )?(?:the )?memory bandwidth",
    ),
    Belief(
        "pix_in_a_guest",
        "GPUs that topo -m shows as PIX in the guest share a PCIe bridge.",
        "The guest’s tree is emulated. On i440FX, Proxmox puts hostpci4 and later behind its bridge "
        "pci.2, so they show PIX whatever the host’s slots are.",
        f"{QEMU_SERVER} (get_pci_addr_map)",
        notes=r"\bPIX\b|GPUs? 4\s?(?:-|–|to)\s?7[^.\n]{0,40}(?:bridge|switch|near|close)",
    ),
    Belief(
        "numa_not_available",
        "NUMA affinity N/A explains missing P2P or slow copies.",
        "It means that the device reports no node, as usual in a VM. It matters only when the guest has "
        "more than one node, and never for NS.",
        "nvidia-smi manual; NCCL 2.30.7, src/graph/topo.cc",
        notes=r"NUMA[^.\n]{0,40}(?:N/A|unknown|missing|not available)",
    ),
    Belief(
        "tp4_pp2_halves",
        "TP4 with PP2 halves communication and so the latency.",
        "The all-reduces of a token stay the same number in sequence; the ring’s steps fall from 14 to "
        "6. Each stage waits for the other, so one stream reads its weights at half the rate.",
        "Shoeybi et al. 2019, Megatron-LM; NCCL 2.30.7, src/graph/tuning.cc",
        notes=r"TP\s?=?4[^.\n]{0,12}PP\s?=?2",
    ),
    Belief(
        "glm5_weights",
        "The weights of GLM-5 in NVFP4 are 296 GB and fit four GPUs of 96 GB.",
        "744 billion parameters at 4.5 bits are 418 GB; public checkpoints are 410–440 GB.",
        "GLM-5 technical report",
        notes=r"\b296\s?GB",
    ),
    Belief(
        "x_vga_off",
        "x-vga=off has to be written for compute GPUs.",
        "Off is the default. On would hide KVM from the guest and so disable the clique.",
        QEMU_SERVER,
        notes=r"x-vga\s*=\s*(?:off|0)",
    ),
    Belief(
        "x_vga_on",
        "x-vga=1 helps a compute GPU.",
        "It makes the GPU the primary display and hides KVM from the guest; the driver then ignores a "
        "clique and answers CNS.",
        QEMU_SERVER,
        notes=r"x-vga\s*=\s*(?:on|1)",
        vm=r"^hostpci\d+:.*\bx-vga=(?:1|on)\b",
    ),
    Belief(
        "hide_kvm",
        "KVM has to be hidden from the guest for NVIDIA’s driver.",
        "NVIDIA’s driver accepts VMs since version 465. Hidden, the driver takes the guest for bare "
        "metal, does not know its chipset and ignores a clique.",
        "NVIDIA driver 465 release notes; open kernel modules 595.45.04, hypervisor.c",
        notes=r"\bkvm\s*=\s*off|hidden\s*=\s*1",
        vm=r"^cpu:.*\bhidden=1\b|^args:.*(?:kvm=off|,-hypervisor)",
    ),
    Belief(
        "fundamental_limit",
        "That nothing changed shows a limit of the hardware.",
        "It shows that none of the settings tried enters the driver’s answer.",
        DRIVER,
        notes=r"fundamental (?:hardware )?limit|hardware limitation",
    ),
    Belief(
        "pci_realloc",
        "pci=realloc in the guest makes the missing GPUs appear.",
        "It changes which GPUs get address space, not how much there is. Physical address bits and the "
        "64-bit window come first.",
        "Linux kernel drivers/pci/setup-bus.c; EDK2 OvmfPkg MemDetect.c",
        notes=r"pci\s*=\s*realloc",
        guest_cmdline=r"\bpci=(?:\w+,)*realloc\b",
    ),
    Belief(
        "shm_disable",
        "NCCL_SHM_DISABLE=1 avoids the slow path.",
        "Where P2P is refused, shared memory is the fast path; without it NCCL uses the network.",
        "NCCL 2.30.7, src/transport.cc",
        notes=r"NCCL_SHM_DISABLE\s*=\s*1",
        nccl=r"^NCCL_SHM_DISABLE=1$",
    ),
    Belief(
        "ignore_disabled_p2p",
        "NCCL_IGNORE_DISABLED_P2P=2 forces P2P.",
        "It ignores the driver’s refusal, and NCCL then fails or hangs where peers cannot be reached.",
        NCCL,
        notes=r"NCCL_IGNORE_DISABLED_P2P",
        nccl=r"^NCCL_IGNORE_DISABLED_P2P=2$",
    ),
    Belief(
        "net_gdr_level",
        "NCCL_NET_GDR_LEVEL speeds up GPUs inside one machine.",
        "It is about network cards reaching GPU memory; one machine without such a card is not concerned.",
        NCCL,
        notes=r"NCCL_NET_GDR_LEVEL",
        nccl=r"^NCCL_NET_GDR_LEVEL=",
    ),
    Belief(
        "shm_memcpy",
        "NCCL_SHM_USE_CUDA_MEMCPY makes small all-reduces faster.",
        "It copies by the copy engine, which adds latency to small messages; NCCL 2.30.7 no longer has it.",
        "NCCL 2.13–2.30.4, src/transport/shm.cc",
        notes=r"SHM_USE_CUDA_MEMCPY",
        nccl=r"^NCCL_SHM_USE_CUDA_MEMCPY=1$",
    ),
    Belief(
        "buffer_size",
        "A larger NCCL_BUFFSIZE speeds up decode.",
        "Decode’s messages of some KiB never fill the 4 MiB default; it can matter for prefill only.",
        "NCCL 2.30.7, src/init.cc",
        notes=r"NCCL_BUFFSIZE",
        nccl=r"^NCCL_BUFFSIZE=",
    ),
)
