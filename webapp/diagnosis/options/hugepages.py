"""Guest memory in huge pages: fewer translations for copies staged in host memory.

Source: Proxmox VE administration guide, hugepages.
"""

from agents.facts.vm import VM_HUGEPAGES
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm, seen

SOURCE = "Proxmox VE administration guide, hugepages"


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    pages = case.facts.value(VM_HUGEPAGES)
    if pages:
        return advise(OptionStatus.DONE, seen(f"hugepages: {pages} is set", case.facts.refs(VM_HUGEPAGES), SOURCE))
    text = (
        "larger pages cost fewer translations on the staged path; needs numa: 1, and 1 GiB pages must be "
        "reserved at boot or the VM does not start"
    )
    return advise(OptionStatus.POSSIBLE, because(text, SOURCE))


option = Option(
    __name__,
    title="Hugepages for the VM",
    phase="P4",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    rollback="`qm set VMID --delete hugepages`, then stop and start; take the kernel options out and reboot the host",
    verified_by="bench.copy before and after, five runs each",
    changes=("vm.hugepages", "host.kernel_cmdline", "vm.qemu_args"),
    judge=judge,
    by_hand="On the host, as root: reserve pages of 1 GiB on its kernel command line, `hugepagesz=1G hugepages=N`, "
    "reboot it, and then `qm set VMID --numa 1 --hugepages 1024`.",
    kernel_option="hugepagesz=1G hugepages=N",
)
