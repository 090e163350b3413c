"""`pcie=1` alone, on the default i440FX board: the VM does not start.

`qm set` accepts it; `qm start` and `qm showcmd` die with `q35 machine model is not enabled`, a check that is
there since 2014.

Source: Proxmox qemu-server 9.2.6, PCI.pm.
"""

from agents.facts.platform import MachineType
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm

SOURCE = "qemu-server 9.2.6, PCI.pm"


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    board, refs = case.situation.board, case.situation.board_refs
    if board is MachineType.Q35:
        text = "the machine is q35; pcie=1 changes how the guest sees the device, not P2P"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, refs))
    if board is MachineType.I440FX:
        text = (
            "the VM will not start: “q35 machine model is not enabled”. The machine is i440FX, and on a "
            "running VM the change waits until the next start"
        )
        return advise(OptionStatus.BLOCKED, because(text, SOURCE, refs))
    text = "on anything but q35 the VM will not start: “q35 machine model is not enabled”"
    return advise(OptionStatus.BLOCKED, because(text, SOURCE))


option = Option(
    __name__,
    title="pcie=1 on the GPUs, without q35",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="`qm set VMID --hostpciN` with the old value",
    verified_by="`qm showcmd VMID` exits 0 before the start",
    changes=("vm.hostpci", "vm.qemu_args"),
    judge=judge,
)
