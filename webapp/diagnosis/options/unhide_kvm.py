"""The KVM signature, which the driver must see to ask for a clique.

`hidden=1` and `x-vga=1` both set kvm=off.

Source: Proxmox qemu-server 9.2.6, PCI.pm and CPUConfig.pm.
"""

from agents.facts.vm import VM_CPU_HIDDEN, VM_HOSTPCI
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "NVIDIA open kernel modules 595.45, hypervisor.c"


def judge(case: Case) -> Advice:
    facts = case.facts
    outside = no_vm(case)
    if outside:
        return outside
    vga = facts.value(VM_HOSTPCI, where=lambda devices: any(device.x_vga for device in devices))
    if case.situation.kvm_hidden or facts.value(VM_CPU_HIDDEN, where=bool) or vga:
        text = "KVM is hidden from the guest, so the driver takes it for bare metal and ignores a clique"
        refs = facts.refs(VM_CPU_HIDDEN, VM_HOSTPCI) or case.situation.platform_refs
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs))
    if case.situation.kvm_hidden is False:
        return advise(OptionStatus.DONE, seen("the guest sees KVM", case.situation.platform_refs, SOURCE))
    return advise(OptionStatus.POSSIBLE, because("whether the guest sees KVM was not read", SOURCE))


option = Option(
    __name__,
    title="Let the guest see KVM (no hidden=1, no x-vga=1)",
    phase="P2",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="`qm set VMID --cpu` and `--hostpciN` with the old values, then stop and start",
    verified_by="guest.kvm_visible: yes; `systemd-detect-virt` prints kvm",
    changes=("vm.cpu", "vm.cpu_hidden", "vm.hostpci", "guest.kvm_visible", "guest.p2p_read", "guest.p2p_write"),
    judge=judge,
    scripted=True,
)
