"""The NVIDIA GPUs on the PCI bus, whether the driver can use them or not.

lspci(8), or sysfs where lspci is missing. More GPUs than nvidia-smi lists means lost GPUs. The host bridge names the
emulated board: 8086:1237 i440FX, 8086:29c0 Q35 (QEMU hw/pci-host/i440fx.c, q35.c).
"""

from agents.facts.gpu import GPU_COUNT_PCI, PCI_GPUS, PciGpu
from agents.facts.platform import MACHINE_TYPE
from agents.parsing import lspci, sysfs_pci
from agents.probe import Command, Functions, Output, Probe, Readings, Signature
from agents.probes.machine_board import read_board, whole_bus

# devices: one line a device. gpus: where in sysfs NVIDIA's display functions are.
PCI = Functions(
    "pci",
    r"""devices() {
  for d in /sys/bus/pci/devices/*; do
    [ -r "$d/class" ] || continue
    read -r vendor <"$d/vendor"; read -r device <"$d/device"; read -r class <"$d/class"
    revision= numa= driver=$(readlink "$d/driver")
    { read -r revision <"$d/revision"; read -r numa <"$d/numa_node"; } 2>/dev/null
    echo "${d##*/} vendor=$vendor device=$device class=$class revision=$revision" \
      "driver=${driver##*/} numa=$numa path=$(readlink -f "$d")"
  done
}
gpus() { devices | sed -n 's|^\([^ ]*\) vendor=0x10de .* class=0x030[02].*|/sys/bus/pci/devices/\1|p'; }""",
)
SYSFS = Command("devices", calls=PCI)


def parse(output: Output) -> Readings:
    listed = lspci.parse(output.stdout)
    if not listed:
        listed = tuple(device.listed for device in sysfs_pci.parse(output.stdout))
    if not listed:
        return _no_readings(output)
    gpus = lspci.gpus(listed)
    board = read_board(listed)
    if gpus:
        lines, missing = tuple(device.line for device in gpus), _missing(output, listed)
        known = PCI_GPUS.known(tuple(map(pci_gpu, gpus)), lines=lines, missing=missing)
        return (known, GPU_COUNT_PCI.known(len(gpus), lines=lines, missing=missing), board)
    why = f"no NVIDIA display function among {len(listed)} devices"
    if output.truncated or (output.alternative < 0 and not whole_bus(listed)):
        why += ", and this is only a part of the bus"
        return (PCI_GPUS.not_run(why), GPU_COUNT_PCI.not_run(why), board)
    return (PCI_GPUS.absent(why), GPU_COUNT_PCI.known(0), board)


def pci_gpu(device: lspci.Device) -> PciGpu:
    name = device.name.removeprefix("NVIDIA Corporation ") or None
    return PciGpu(device.address, device.vendor_device, name, device.revision, device.driver)


def _missing(output: Output, listed: tuple[lspci.Device, ...]) -> tuple[str, ...]:
    if output.truncated:
        return ("the end of the list",)
    if output.alternative < 0 and len(listed) == 1:
        return ("other devices: the text shows only this one",)
    return ()


def _no_readings(output: Output) -> Readings:
    facts = (PCI_GPUS, GPU_COUNT_PCI, MACHINE_TYPE)
    if output.tool_missing:
        return tuple(f.unsupported("lspci is not installed and sysfs shows no PCI") for f in facts)
    if output.stdout.strip():
        return tuple(f.unreadable("no line is a PCI device") for f in facts)
    return tuple(f.absent("no PCI devices") for f in facts)


probe = Probe(
    __name__,
    title="PCI devices",
    commands=(Command("lspci -Dnnk", needs=("lspci",)), SYSFS),
    supplies=(PCI_GPUS, GPU_COUNT_PCI, MACHINE_TYPE),
    parse=parse,
    signature=Signature(
        typed=r"lspci\b(?!.*\s-\w*(?:t|vv|x))",
        starts=(
            r"^\s*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] [^:\[]{2,60}(?: \[[0-9a-f]{4}\])?: ",
            r"^\s*(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] [0-9a-f]{4}: [0-9a-f]{4}:[0-9a-f]{4}",
            r"^\S*[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7] .*\bvendor=0x[0-9a-f]{4}",
        ),
        belongs=(
            r"^\s+\S|^\s*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] |\bvendor=0x|"
            r"^(?:Subsystem|Kernel (?:driver|modules)|DeviceName)\b"
        ),
        any_machine=True,
        # With -vv and more the same lines show capabilities, regions and links.
        between=("guest.clique_capability", "guest.gpu_bars", "guest.pcie_links"),
    ),
    timeout_s=30,
    slow=True,
)
