"""Sessions about the stand-in host: what its own files say, beside what the guest saw."""

from __future__ import annotations

from typing import Any

from agents.facts import Reading
from agents.facts.host import BOOT_LOADER, PCI_MAPPINGS, BootLoader
from agents.facts.platform import HOST_NUMA_NODES, NumaNode
from agents.facts.vm import VMS
from agents.parsing import pci_mappings, qm_config
from tests.standin.pve_host import PveHost
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import Do, phase_script

NODES = HOST_NUMA_NODES.known((NumaNode(0, "0-31", 393216), NumaNode(1, "32-63", 393216)), lines=(1,))


def known_of(host: PveHost, *more: Reading[Any], loader: BootLoader | None = None) -> Facts:
    """The session after the collector's answers from this host."""
    text = f"### /etc/pve/qemu-server/{host.vmid}.conf\n{host.config}"
    readings = [
        *kvm_guest(),
        VMS.known(qm_config.parse(text), lines=(1,)),
        BOOT_LOADER.known(loader or BootLoader.SYSTEMD_BOOT, lines=(1,)),
    ]
    mapped = pci_mappings.parse(host.read("etc/pve/mapping/pci.cfg"))
    readings += [PCI_MAPPINGS.known(mapped[0], lines=mapped[1])] if mapped else []
    return facts_of(*readings, *more)


def scripts_of(facts: Facts, phase: str, vmid: int = 128) -> dict[Do, str]:
    return {do: phase_script(facts, phase, do, vmid).text for do in Do}
