"""Proxmox's PCI resource mappings: the devices behind `hostpciN: mapping=…`.

/etc/pve/mapping/pci.cfg (Proxmox guest-common, Mapping/PCI.pm). A mapping with several devices is a pool: each start
takes the first free one.
"""

from agents.facts.host import PCI_MAPPINGS
from agents.parsing import pci_mappings
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no PCI mappings are configured"
_SH = rf"""[ -d /etc/pve ] || exit 127
[ -e /etc/pve/mapping/pci.cfg ] || {{ echo '{_NONE}'; exit 0; }}
cat /etc/pve/mapping/pci.cfg"""


def parse(output: Output) -> Readings:
    answer = pci_mappings.parse(output.stdout)
    if answer is not None:
        mappings, lines = answer
        missing = ["the end of the file"] if output.truncated else []
        if any(not mapping.mapping for mapping in mappings):
            missing.append("the name of a mapping")
        return (PCI_MAPPINGS.known(mappings, lines=lines, missing=tuple(missing)),)
    if output.tool_missing:
        return (PCI_MAPPINGS.unsupported("no /etc/pve: not a Proxmox VE host"),)
    if output.refused:
        return (PCI_MAPPINGS.not_run("reading the mappings was refused; root may"),)
    if _NONE in output.stdout or "[]" in output.stdout[:40] or "No such file" in output.stderr:
        return (PCI_MAPPINGS.absent(_NONE),)
    if not output.stdout.strip() and output.exit_code == 0:
        return (PCI_MAPPINGS.absent("the file of PCI mappings is empty"),)
    return (PCI_MAPPINGS.unreadable("no mapping in the output"),)


probe = Probe(
    __name__,
    title="Proxmox PCI mappings",
    commands=(Command(_SH, root=True),),
    supplies=(PCI_MAPPINGS,),
    parse=parse,
    signature=Signature(
        typed=r"mapping/pci(?:\.cfg)?\b",
        starts=(r"^\s*map\s+\S*\bpath=", r"^│ id\b.*│ map\b", r'^\s*"map" ?: ?\[', r'^\[\{.*"map":\['),
        belongs=(
            r"^\s+(?:map|description|mdev|live-migration-capable)\b|^\s*$|^[A-Za-z][\w-]*\s*$|"
            r'^[\s┌├└╞│]|^\s*[\[\]{}"]'
        ),
        above=r"^[A-Za-z][\w-]*\s*$",
    ),
    root_adds="the mappings, which only root and Proxmox may read",
)
