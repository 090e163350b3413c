"""The Proxmox VE version: pveversion(1). Its major number shows the kernel and QEMU generation."""

from agents.facts.host import PVE_VERSION
from agents.parsing import pveversion
from agents.probe import Command, Output, Probe, Readings, Signature


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (PVE_VERSION.unsupported("pveversion is not installed: no Proxmox VE host"),)
    version = pveversion.parse(output.stdout)
    if version is None:
        why = "no package in the output" if output.stdout.strip() else "no output"
        return (PVE_VERSION.unreadable(why),)
    if version.manager:
        return (PVE_VERSION.known(version.manager, lines=version.lines),)
    if version.major is not None:
        missing = ("the version of pve-manager: the major number is that of other packages",)
        return (PVE_VERSION.known(str(version.major), lines=version.lines, missing=missing),)
    return (PVE_VERSION.unreadable("packages of Proxmox, but none that tells the version"),)


probe = Probe(
    __name__,
    title="Proxmox VE version",
    commands=(Command("pveversion -v", needs=("pveversion",)),),
    supplies=(PVE_VERSION,),
    parse=parse,
    signature=Signature(
        typed=r"pveversion\b",
        starts=(
            r"^proxmox-ve(?:-\S+)?: \d",
            r"^pve-manager[:/] ?\d",
            r"^(?:qemu-server|pve-qemu-kvm|libpve-[a-z-]+|pve-[a-z0-9-]+): \d",
        ),
        belongs=r"^[a-z0-9][a-z0-9.+-]+: \d\S*(?: \(running .*\))?\s*$",
    ),
    timeout_s=15,
)
