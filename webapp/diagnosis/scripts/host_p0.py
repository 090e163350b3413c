"""P0 on a Proxmox host: what the later phases may have to go back to, kept in /root/peerpath."""

from webapp.diagnosis.scripts.model import Do, Plan
from webapp.diagnosis.scripts.vm_state import VmState

_CHANGES = {
    Do.APPLY: ("a new folder /root/peerpath/{vm}/P0.(date); nothing else",),
    Do.VERIFY: (),
    Do.ROLLBACK: ("the whole configuration of VM {vm}, back to the one that was kept",),
}


def plan(vm: VmState, do: Do) -> Plan:
    return Plan(
        title="Keep the configuration",
        values=vm.values,
        effects=tuple(text.format(vm=vm.id) for text in _CHANGES[do]),
        reads=(
            "the VM's configuration, pending changes and QEMU command line",
            "the resource mappings, the boot loader's files and the Proxmox version",
        ),
        refusals=("it is not run as root", "the VM's id, name or UUID is not the session's"),
        risk="None: nothing is changed. The copies hold what the VM's configuration holds.",
    )
