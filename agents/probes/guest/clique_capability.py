"""Whether the hypervisor put GPUs into a GPUDirect clique, read from their PCI config space.

The guest driver allows PCIe peer access between GPUs of one clique (NVIDIA open kernel modules 595.45, hypervisor.c).
Beyond the first 64 bytes the kernel shows config space to CAP_SYS_ADMIN alone (drivers/pci/pci-sysfs.c): a short read
is no answer and proves no absence.
"""

from agents.facts import Reading
from agents.facts.gpu import BARS, CLIQUE_CAPABILITY, PCI_GPUS, Bar, Clique, PciGpu
from agents.parsing import lspci, lspci_caps
from agents.parsing.lspci_caps import Block, CliqueCapability, Numbered
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest.pci_devices import PCI, pci_gpu

_NO_GPU = "no NVIDIA display function on the PCI bus"
_SH = rf"""gpus=$(gpus)
for d in $gpus; do echo "config of ${{d##*/}}"; od -Ax -v -tx1 -N 256 "$d/config"; done
[ "$gpus" ] || echo '{_NO_GPU}'"""
_NVIDIA = b"\xde\x10"
_DENIED = "config space beyond 64 bytes was not shown; root (CAP_SYS_ADMIN) sees it"


def parse(output: Output) -> Readings:
    devices = lspci.gpus(lspci.parse(output.stdout))
    return (_cliques(output, devices), _bars(devices), _gpus(devices, output.alternative))


def _cliques(output: Output, devices: tuple[lspci.Device, ...]) -> Reading[tuple[Clique, ...]]:
    blocks: list[Block] = [*lspci_caps.dumps(output.stdout), *((d.address, d.line, d.details) for d in devices)]
    if not blocks and lspci_caps.config_space(numbered := tuple(enumerate(output.lines, 1))):
        blocks = [("unknown", 1, numbered)]
    if not blocks:
        return _without_gpu(output)
    cliques: list[Clique] = []
    lines: list[int] = []
    missing: list[str] = []
    for address, line, text in blocks:
        looked, capability, why = _find_capability(text)
        if not looked:
            missing.append(f"{address}: {why}")
            continue
        lines.append(capability.line or line if capability else line)
        cliques.append(
            Clique(address, capability.clique_id, capability.offset) if capability else Clique(address, None)
        )
        if capability and capability.clique_id is None:
            missing.append(f"{address}: the clique's number, which lspci -xxx shows")
    if not cliques:
        return CLIQUE_CAPABILITY.not_run(missing[0].partition(": ")[2])
    if output.truncated:
        missing.append("the end of the output")
    return CLIQUE_CAPABILITY.known(tuple(cliques), lines=tuple(lines), missing=tuple(missing))


def _find_capability(text: Numbered) -> tuple[bool, CliqueCapability | None, str]:
    """Whether the capability list is readable, the clique capability, and the reason if the list is not readable."""
    space = lspci_caps.config_space(text)
    if space and space[:2] != _NVIDIA:
        why = "reads ff: the device does not answer" if space[0] == 0xFF else "is not NVIDIA's"
        return False, None, f"config space {why}"
    if len(space) >= lspci_caps.CONFIG_BYTES:
        return True, lspci_caps.clique_in_config(space), ""
    capability = lspci_caps.clique_in_text(text)
    if capability or (lspci_caps.lists_all_standard(text) and not lspci_caps.access_denied(text)):
        return True, capability, ""
    if space or lspci_caps.access_denied(text):
        return False, None, _DENIED
    return False, None, "this output does not list the capabilities to their end"


def _without_gpu(output: Output) -> Reading[tuple[Clique, ...]]:
    numbered = tuple(enumerate(output.lines, 1))
    lone = lspci_caps.clique_in_text(numbered)
    if lone:
        clique = Clique("unknown", None, lone.offset)
        missing = ("which GPU this is", "the clique's number")
        return CLIQUE_CAPABILITY.known((clique,), lines=(lone.line,), missing=missing)
    if _NO_GPU in output.stdout[:2000] or lspci.parse(output.stdout):
        return CLIQUE_CAPABILITY.absent(_NO_GPU)
    if output.tool_missing:
        return CLIQUE_CAPABILITY.unsupported("neither od nor lspci")
    if output.refused or not output.stdout.strip():
        return CLIQUE_CAPABILITY.not_run(_DENIED)
    return CLIQUE_CAPABILITY.unreadable("neither a config dump nor lspci -vv")


def _bars(devices: tuple[lspci.Device, ...]) -> Reading[tuple[Bar, ...]]:
    read = [lspci_caps.bars(device) for device in devices]
    all_bars = tuple(bar for bars, _ in read for bar in bars)
    if all_bars:
        return BARS.known(all_bars, lines=tuple(line for _, lines in read for line in lines))
    return BARS.not_run("this output lists no regions; guest.gpu_bars reads them")


def _gpus(devices: tuple[lspci.Device, ...], alternative: int) -> Reading[tuple[PciGpu, ...]]:
    """Only for a paste, where `lspci -vv` is often the only list there is."""
    if alternative < 0 and devices:
        gpus = tuple(pci_gpu(device) for device in devices)
        missing = ("other devices: lspci -vv is often asked for one",) if len(gpus) == 1 else ()
        return PCI_GPUS.known(gpus, lines=tuple(d.line for d in devices), missing=missing)
    return PCI_GPUS.not_run("guest.pci_devices lists them")


probe = Probe(
    __name__,
    title="GPUDirect clique",
    commands=(Command(_SH, needs=("od",), root=True, calls=PCI),),
    supplies=(CLIQUE_CAPABILITY, BARS, PCI_GPUS),
    parse=parse,
    signature=Signature(
        typed=r"lspci\b(?!.*\s-\w*t).*\s-\w*(?:vv|x)|/sys/(?:bus/pci|devices)/\S*/config\b",
        starts=(r"^config of [0-9a-f]{4}:", r"^\s*Capabilities: \[(?:c8|d4)\] Vendor Specific Information: Len=08"),
        belongs=(
            r"^\s+\S|^[0-9a-f]{2,8}:? (?:[0-9a-f]{2} ){3}|^[0-9a-f]{6}$|^config of |^$|"
            r"^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] "
        ),
        score=0.95,
        any_machine=True,
    ),
    timeout_s=20,
    slow=True,
    root_adds="config space beyond 64 bytes, where the clique capability would be",
)
