"""The processor: its model and its number of physical address bits.

GPU address regions must fit into the physical address bits: QEMU's default CPU models show 40 bits, 1 TiB. lscpu(1),
or /proc/cpuinfo's "address sizes".
"""

from agents.facts import Reading
from agents.facts.platform import CPU_MODEL, KVM_VISIBLE, NUMA_NODES, PHYS_BITS, VIRT_KIND, NumaNode
from agents.parsing import cpuinfo, lscpu
from agents.probe import Command, Output, Probe, Readings, Signature

_FACTS = (CPU_MODEL, PHYS_BITS, KVM_VISIBLE, VIRT_KIND, NUMA_NODES)


def parse(output: Output) -> Readings:
    read = lscpu.parse(output.stdout)
    info = cpuinfo.parse(output.stdout)
    model, model_line = read.model or info.model, read.lines.get("model") or info.model_line
    bits, bits_line = read.phys_bits or info.phys_bits, read.lines.get("phys_bits", info.bits_line)
    if not (model or bits or read.lines or info.flags_line):
        return _no_readings(output)
    return (
        CPU_MODEL.known(model, lines=(model_line,)) if model else CPU_MODEL.unreadable("no model name in the output"),
        PHYS_BITS.known(bits, lines=(bits_line,)) if bits else _no_bits(output.alternative),
        _kvm(read),
        _kind(read, output.alternative),
        _nodes(read, output.alternative),
    )


def _no_bits(alternative: int) -> Reading[int]:
    if alternative < 0:
        return PHYS_BITS.not_run("no address sizes in this text")
    return PHYS_BITS.unsupported("no address sizes: too old a tool, or not x86")


def _kvm(read: lscpu.Lscpu) -> Reading[bool]:
    if read.hypervisor_vendor == "KVM":
        return KVM_VISIBLE.known(True, lines=(read.lines["hypervisor_vendor"],))
    return KVM_VISIBLE.not_run("no line here names KVM; guest.virt_kind looks closer")


def _kind(read: lscpu.Lscpu, alternative: int) -> Reading[str]:
    """Only for a paste: on a target guest.virt_kind weighs this against firmware names."""
    missing: tuple[str, ...] = ("firmware names: clouds are told apart by them",)
    if alternative < 0 and read.hypervisor_vendor:
        line = read.lines["hypervisor_vendor"]
        return VIRT_KIND.known(read.hypervisor_vendor.lower(), lines=(line,), missing=missing)
    if alternative < 0 and read.hypervisor_flag is False:
        line = read.lines["hypervisor_flag"]
        return VIRT_KIND.known("none", lines=(line,), missing=missing)
    if alternative < 0 and read.past_hypervisor and read.hypervisor_flag is None:
        line = read.lines["feature"]
        missing = ("the processor's flags", *missing)
        return VIRT_KIND.known("none", lines=(line,), missing=missing)
    return VIRT_KIND.not_run("guest.virt_kind decides")


def _nodes(read: lscpu.Lscpu, alternative: int) -> Reading[tuple[NumaNode, ...]]:
    if alternative < 0 and read.numa_nodes:
        missing = ("memory of each node",)
        return NUMA_NODES.known(read.numa_nodes, lines=(read.lines["numa_nodes"],), missing=missing)
    return NUMA_NODES.not_run("guest.numa reads the nodes")


def _no_readings(output: Output) -> Readings:
    if output.tool_missing:
        return tuple(f.unsupported("neither lscpu nor /proc/cpuinfo") for f in _FACTS)
    return tuple(f.unreadable("nothing here describes a processor") for f in _FACTS)


probe = Probe(
    __name__,
    title="Processor",
    commands=(
        Command("lscpu", needs=("lscpu",)),
        Command("grep -m3 -E '^(model name|address sizes|flags)' /proc/cpuinfo"),
    ),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"lscpu\b|/proc/cpuinfo",
        starts=(
            r"^[^\W\d_]{2,20}\s*[:：]\s+(?:x86_64|aarch64|i686|ppc64le)$",
            r"^(?:Socket\(s\)|Sockel|CPU\(s\)|NUMA node\(s\)|NUMA-Knoten|Hypervisor vendor)\s*: +\S",
            r"^processor\s+: 0$",
            r"^(?:Model name|Modellname|Nom de modèle|model name)\s*: ",
            r"^address sizes\s+: \d+ bits",
        ),
        belongs=(
            r"^(?!(?:ROCM|vLLM|CUDA|PyTorch) )[^\s:：][^:：]{1,60}[:：]\s|^\s{2,}[A-Z][^:]{1,40}:\s|"
            r"^[a-z][\w ]{1,20}\t+:|^$"
        ),
        any_machine=True,
    ),
)
