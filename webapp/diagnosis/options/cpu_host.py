"""The host's processor shown to the guest, address width included.

Proxmox's own models expose 40 physical address bits, 1 TiB; `host` passes the processor's width.

Source: Proxmox qemu-server 9.2.6, CPUConfig.pm.
"""

from agents.facts import ReadingKind
from agents.facts.platform import PHYS_BITS
from agents.facts.vm import VM_CPU
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "qemu-server 9.2.6, CPUConfig.pm"


def judge(case: Case) -> Advice:
    cpu, facts = case.facts.value(VM_CPU), case.facts
    outside = no_vm(case)
    if outside:
        return outside
    if case.facts.kind(VM_CPU) is ReadingKind.ABSENT:
        text = (
            "the VM’s configuration names no CPU type; Proxmox’s default has 40 physical address bits and "
            "hides instructions of the processor"
        )
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, facts.refs(VM_CPU)))
    if cpu is None:
        text = "the VM’s CPU type was not read; a model with 40 address bits is too narrow for large BARs"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, facts.refs(PHYS_BITS)))
    if cpu.startswith(("host", "max")):
        return advise(OptionStatus.DONE, seen(f"the CPU type is {cpu}", facts.refs(VM_CPU), ""))
    text = (
        f"the CPU type is {cpu}: 40 physical address bits, and instructions of the processor hidden, which "
        "slows the launching of kernels"
    )
    return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, facts.refs(VM_CPU)))


option = Option(
    __name__,
    title="CPU type host",
    phase="P2",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="`qm set VMID --cpu` with the old value, then stop and start",
    verified_by="guest.phys_bits shows the host’s width; the guest names the host’s processor",
    changes=("vm.cpu", "guest.cpu_model", "guest.phys_bits", "guest.kvm_visible"),
    judge=judge,
    scripted=True,
)
