"""The VM's processors held on cores of its own.

Source: Proxmox VE administration guide, CPU affinity.
"""

from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    text = "avoids migration and shared cores, which shows in launch times of a single stream"
    return advise(OptionStatus.POSSIBLE, because(text, "Proxmox VE administration guide, affinity"))


option = Option(
    __name__,
    title="Pin the VM to cores (affinity)",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="`qm set VMID --delete affinity`, then stop and start",
    verified_by="bench.launch before and after",
    changes=("host.vms", "vm.qemu_args"),
    judge=judge,
    by_hand="On the host, as root: `qm set VMID --affinity 0-31`, with cores of the GPUs’ memory node that nothing "
    "else on the host needs; then stop the VM and start it.",
)
