"""The order of a plan: options that are done in one maintenance step belong to one phase."""

from __future__ import annotations

PHASES: dict[str, str] = {
    "P0": "Evidence and backup, before anything changes",
    "P1": "Inside the guest: engine profile, graphs, backends, NCCL settings",
    "P2": "The VM: CPU type, visible KVM, clique; then gates 4 to 7 of the ladder",
    "P3": "Optional: q35 and pcie=1 together, the network name fixed first",
    "P4": "The machine itself: slots and links, NUMA, hugepages, CPU affinity",
    "P5": "Other ground: without a VM, a container, a switch board",
}
