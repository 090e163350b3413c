"""The q35 board and `pcie=1` on every GPU, changed in one step.

The network card gets another name (ens18 becomes enp6s18), so the network is matched by MAC address first.

Source: NVIDIA open kernel modules 595.45, p2p_caps.c; systemd, network interface naming; Proxmox qemu-server
9.2.6, PCI.pm.
"""

from agents.facts.platform import MachineType
from agents.facts.vm import VM_HOSTPCI
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "NVIDIA open kernel modules 595.45, p2p_caps.c"
UNCHANGED = "neither board nor pcie=1 enters the driver’s decision: P2P status stays as it is"


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    devices, refs = case.facts.value(VM_HOSTPCI) or (), case.facts.refs(VM_HOSTPCI)
    no_p2p = because(UNCHANGED, SOURCE, case.situation.board_refs + refs)
    if case.situation.board is MachineType.Q35 and all(device.pcie for device in devices):
        board = seen("the VM is a q35 machine already", case.situation.board_refs, SOURCE)
        return advise(OptionStatus.DONE, board, no_p2p)
    nic = because(
        "the guest’s network interface gets another name: match it by MAC address first", "qemu-server 9.2.6, PCI.pm"
    )
    return advise(OptionStatus.POSSIBLE, no_p2p, nic, effect=(1.0, 1.0))


option = Option(
    __name__,
    title="Machine q35 with pcie=1 on every GPU, together",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="shut down, restore the VM configuration, start",
    verified_by="the VM runs, the network is up, every GPU is listed; P2P is expected unchanged",
    changes=("vm.machine", "vm.hostpci", "vm.qemu_args", "guest.machine_type", "guest.topology", "guest.worst_link"),
    judge=judge,
    scripted=True,
)
