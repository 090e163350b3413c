"""From changes of a VM's configuration to the plan of a script."""

from webapp.diagnosis.case import Restart
from webapp.diagnosis.claim import Range
from webapp.diagnosis.scripts.model import Change, Plan
from webapp.diagnosis.scripts.vm_state import NOT_COMPARED, VmState

READS = (
    "the VM's configuration, pending changes and state (qm config, qm pending, qm status, qm showcmd)",
    "whether high availability manages it (ha-manager config)",
    "vendor and class of its GPUs (/sys/bus/pci, /etc/pve/mapping/pci.cfg)",
)
REFUSALS = (
    "it is not run as root, or Proxmox's tools are missing",
    "the VM's id, name or UUID is not the session's",
    "a line that it would change is neither as the session read it nor as it would make it",
    "changes are pending, the VM is locked, a template, managed by HA, or has snapshots (--with-snapshots)",
    "pcie=1 would meet a machine that is not q35",
    "a device that is to get a clique is not one NVIDIA GPU function",
)
ROLLBACK_REFUSALS = (*REFUSALS[:2], "a line was changed by hand since this phase was applied", REFUSALS[3])


def vm_plan(
    vm: VmState,
    *,
    title: str,
    changes: tuple[Change, ...],
    values: dict[str, str],
    left_out: tuple[str, ...],
    downtime: Restart,
    risk: str,
    predicted_effect: Range | None,
) -> Plan:
    """changes: also those that hold already; the script tells which are left."""
    return Plan(
        title=title,
        values={**vm.values, **values},
        vm_changes=changes,
        effects=tuple(change.text for change in changes if change.was != change.new),
        reads=READS,
        refusals=REFUSALS,
        left_out=(*((NOT_COMPARED,) if vm.hidden else ()), *left_out),
        downtime=downtime,
        risk=risk,
        predicted_effect=predicted_effect,
    )
