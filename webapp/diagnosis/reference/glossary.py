"""Terms, one word a concept, the same on every screen."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """text: one paragraph. source: "" for this product's own words."""

    term: str
    text: str
    source: str = ""


GLOSSARY: tuple[Term, ...] = (
    Term(
        "Session",
        "One guided diagnosis, from “it is too slow” to “this is what it was, and this is what changed”. "
        "Its outputs, verdicts, reviews and decisions belong together.",
    ),
    Term(
        "Target",
        "A machine with a role: guest is the VM with the GPUs, or a GPU server without a VM; host is the "
        "hypervisor below it.",
    ),
    Term(
        "Agent",
        "What runs a script at a target: over SSH, on this machine, or by replaying outputs that a person pasted.",
    ),
    Term("Probe", "One question that only reads: the commands that can answer it, and the parser of their output."),
    Term("Benchmark", "A program that loads the GPUs to time them. It says so beforehand and needs a person’s yes."),
    Term(
        "Collector",
        "One readable shell script made from a list of probes. The same script runs over SSH, locally, or by "
        "a person who pastes its output back.",
    ),
    Term("Evidence", "A raw output that is never changed, with its hash and where it came from."),
    Term(
        "Reading",
        "What a parser got from an output: known, absent (looked for and not there), unsupported, unreadable "
        "or not known (the output does not tell, or was refused; “not_run” in JSON). These stay apart, so "
        "that unknown never looks like healthy.",
    ),
    Term(
        "Fact",
        "One thing that can be known about a machine, with every reading of it. The view says whose eyes saw "
        "it: the guest’s, the host’s or a person’s.",
    ),
    Term("Finding", "A statement that follows from facts, with its evidence."),
    Term(
        "Hypothesis",
        "A claim about where the time goes. Evidence supports it, refutes it or leaves it open; not enough "
        "evidence is an answer.",
    ),
    Term(
        "Ladder",
        "The eight gates that stand between two GPUs and a gain from peer-to-peer: fabric, mapped, granted, "
        "driver, delivered, collective, used, worth. The first that fails is the diagnosis of P2P, not of "
        "the speed.",
    ),
    Term(
        "Gate",
        "One step of the ladder, judged by its own evidence: pass, fail, unknown or not applicable. Without "
        "evidence it is unknown, with what the literature expects beside it.",
    ),
    Term(
        "Bound",
        "The arithmetic of what a change can gain, before anyone changes anything: step time, floor, "
        "communication, and what is left unexplained. Each is a range with its basis.",
    ),
    Term(
        "Step",
        "One pass through the model that gives every running request its next token, or several with draft "
        "tokens. Its time is concurrency × accepted tokens ÷ output tokens a second.",
    ),
    Term(
        "Floor",
        "The least a step can take: the bytes of weights each GPU has to read, divided by what its memory "
        "gives. KV-cache reads come on top.",
        "Pope et al., Efficiently Scaling Transformer Inference, 2022",
    ),
    Term(
        "Basis",
        "How a figure is known. Measured: read or timed on this machine. Estimated: computed from such "
        "figures. Literature: from a published source. Inferred: concluded from other facts.",
    ),
    Term(
        "Run",
        "One start of probes or of a benchmark at a target. A worker that takes it holds a lease on it, and "
        "renews that while it lives; a run whose lease ran out is called lost, and what it brought is kept.",
    ),
    Term("Reconciler", "The part of an installation that ends runs whose worker died and sends again what got lost."),
    Term("Option", "A possible change with its status, cost, way back and what verifies it."),
    Term("Phase", "Options that are done in one maintenance step, P0 to P5."),
    Term(
        "Decision",
        "A record of what was chosen and why. It pins its evidence by hash and turns stale when that "
        "evidence is superseded.",
        "Markdown Architectural Decision Records (MADR)",
    ),
    Term(
        "A/B",
        "Runs of one measurement with an option (arm B) and without it (arm A), in turns or in blocks. Drift "
        "is what the machine did by itself meanwhile: arm A at the end is not what it was at the beginning.",
    ),
    Term("Review", "Comments, agreement or dispute, and approval by other people."),
    Term("Event", "One act or change of state in a session’s append-only log."),
    Term(
        "Peer-to-peer (P2P)",
        "One GPU reads or writes another’s memory without a detour over host memory, over NVLink or PCIe.",
        "NVIDIA CUDA programming guide, peer-to-peer memory access",
    ),
    Term(
        "Clique",
        "A number that the hypervisor puts into a GPU’s config space. GPUs with the same number are promised "
        "to reach each other. It is an assertion and enables nothing; a false one hangs or corrupts data.",
        "QEMU hw/vfio/pci-quirks.c, x-nv-gpudirect-clique",
    ),
    Term(
        "NS, CNS and the other codes",
        "Answers of nvidia-smi topo -p2p. OK: allowed. NS: not supported, in a KVM guest mostly for want of "
        "a clique. CNS: chipset not known, or GeForce policy. GNS: GPU excluded. TNS: path excluded. DR: "
        "switched off by a registry key. They are policy, not a measurement.",
        "NVML, nvmlGpuP2PStatus_t; NVIDIA open kernel modules 595.45, p2p_caps.c",
    ),
    Term(
        "PIX, PXB, PHB, NODE, SYS",
        "How far two GPUs are apart in the PCI tree that this machine sees, from one bridge to another "
        "socket. PHB is PCIe Host Bridge. In a VM the tree is emulated and says nothing about the wiring.",
        "nvidia-smi manual, topo -m",
    ),
    Term(
        "All-reduce",
        "Every GPU gets the sum of what all hold. Tensor parallelism makes two in each layer, one after the "
        "other; a ring of n GPUs takes 2(n−1) dependent steps for one.",
        "Megatron-LM, Shoeybi et al. 2019; nccl-tests, PERFORMANCE.md",
    ),
    Term(
        "Tensor and pipeline parallel (TP, PP)",
        "TP splits every layer over the GPUs, so that all work on one token together. PP gives each group of "
        "GPUs some of the layers; at concurrency 1 the groups wait for each other.",
        "Megatron-LM, Narayanan et al. 2021",
    ),
    Term(
        "SHM and NET",
        "NCCL’s ways without P2P. SHM stages data in shared host memory; NET goes through the network, which "
        "on one machine is a misconfiguration.",
        "NCCL user guide",
    ),
    Term(
        "Device-timed and host-synchronised",
        "The GPU’s own time in a queue or CUDA graph, against a call that waits for the result each time. "
        "The second reads 14 to 17 µs even inside one GPU, so alone it proves nothing.",
        "measured on two H200, 2026",
    ),
    Term(
        "Staged copy",
        "A copy between GPUs through host memory. Its plateau on PCIe Gen5 x16 is 38 to 45 GB/s, in a VM as without.",
        "public P2P-off measurements, Menlo Research 2025",
    ),
    Term(
        "BAR and MMIO window",
        "The region of a GPU’s memory that others can address, and the space the firmware has for such "
        "regions. Too few physical address bits leave GPUs without one.",
        "EDK2 OvmfPkg MemDetect.c",
    ),
    Term(
        "IOMMU group",
        "Devices that the IOMMU cannot tell apart. One group a GPU is what passthrough wants; groups need "
        "not be merged for P2P inside one VM.",
        "Linux VFIO documentation",
    ),
    Term(
        "ACS",
        "A PCIe feature that sends traffic between devices up to the root port to be checked. It costs time "
        "only where GPUs share a switch.",
        "PCI Express base specification",
    ),
    Term(
        "q35 and i440FX",
        "The two boards QEMU emulates. Only q35 presents PCIe, so pcie=1 needs it. Neither enters the "
        "driver’s decision on P2P.",
        "qemu-server 9.2.6, PCI.pm",
    ),
    Term(
        "NVLink and NVSwitch",
        "Links between GPUs beside PCIe; a switch joins all GPUs of a board once its fabric manager, or "
        "IMEX, has set it up. They need no clique and do not pass the IOMMU.",
        "NVIDIA Fabric Manager user guide",
    ),
    Term(
        "NCCL",
        "NVIDIA’s library for collectives between GPUs. It asks the driver once, when a communicator is "
        "made, and takes P2P, shared memory or the network from then on.",
        "NCCL user guide",
    ),
    Term(
        "Expert parallel and DP attention (EP, DP)",
        "EP gives each GPU some of the experts and exchanges tokens all-to-all. DP attention gives each GPU "
        "requests of its own for attention. Both are for many requests; one stream gains nothing.",
        "SGLang and vLLM documentation, 2026",
    ),
    Term(
        "Mixture of experts (MoE)",
        "A model of which each token wakes a few experts. One stream reads only those weights; a batch "
        "touches more of them, in the end all.",
        "Shazeer et al. 2017",
    ),
    Term(
        "KV cache",
        "What attention keeps of each token of context, in GPU memory beside the weights. Its reads come on "
        "top of the floor.",
        "vLLM, Kwon et al. 2023",
    ),
    Term(
        "Draft tokens",
        "Tokens that a small model proposes and the large one checks in one step. Messages grow by the "
        "drafts; how many are accepted decides what a step yields.",
        "Leviathan et al. 2023",
    ),
    Term(
        "CUDA graph",
        "A step’s kernels recorded once and launched as one. Without it each kernel costs a launch by the "
        "processor, thousands in a step.",
        "CUDA programming guide, CUDA graphs",
    ),
    Term(
        "IOMMU and VFIO",
        "The unit that translates and checks what devices read and write, and the kernel’s way to hand a "
        "device to a VM through it. One VM’s devices share a domain that can hold each other’s BARs.",
        "Linux VFIO documentation; QEMU hw/vfio/listener.c",
    ),
    Term(
        "MIG and vGPU",
        "A GPU cut into instances, and a GPU shared out by the hypervisor. Over PCIe the driver answers NS for both.",
        "NVIDIA MIG user guide; NVIDIA vGPU documentation",
    ),
    Term(
        "NUMA node",
        "Memory and devices that are near to some of the processor’s cores. N/A for a GPU means that the "
        "machine reports none, as usual in a VM; it matters only with more than one node.",
        "Linux NUMA documentation; nvidia-smi manual, topo -m",
    ),
    Term(
        "Xid",
        "The number of an error that the NVIDIA driver writes into the kernel log. 79: the GPU has fallen off the bus.",
        "NVIDIA Xid catalogue",
    ),
    Term(
        "Utilisation",
        "The share of time in which at least one kernel ran. A kernel that waits counts as much as one that computes.",
        "NVML documentation, nvmlUtilization_t",
    ),
)
