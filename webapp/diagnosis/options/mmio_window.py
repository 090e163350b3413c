"""Address space for the GPUs' BARs: enough bits, and a window large enough.

With SeaBIOS by `-global q35-pcihost.pci-hole64-size`, with OVMF by `opt/ovmf/X-PciMmio64Mb`. In this order:
physical address bits, then the window, then `pci=realloc`.

Source: EDK2 PlatformInitLib, MemDetect.c; QEMU, pci-hole64-size.
"""

from agents.facts.gpu import BAR_FAILURES
from agents.facts.platform import PHYS_BITS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart, Verdict
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.option import Option, advise, because, no_vm

SOURCE = "EDK2 OvmfPkg MemDetect.c; QEMU pci-hole64-size"


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    shortage = case.claims("bar_space_shortage") if case.refuted("bar_space_shortage") else None
    if case.supported("bar_space_shortage"):
        text = "GPUs got no address space: address bits first (CPU type host), then the window"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, case.facts.refs(BAR_FAILURES, PHYS_BITS)))
    if shortage and shortage.for_:
        text = "every GPU has its address space now; only if one loses it again, as it did before"
        return advise(
            OptionStatus.POSSIBLE, because(text, SOURCE, _lines(shortage) + case.facts.refs(BAR_FAILURES, PHYS_BITS))
        )
    if shortage:
        text = "every GPU has its address space; the size of a BAR does not enter the driver’s NS"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, _lines(shortage)))
    return advise(OptionStatus.POSSIBLE, because("only for GPUs that get no address space", SOURCE))


def _lines(shortage: Verdict) -> tuple[EvidenceRef, ...]:
    return shortage.against[0].evidence


option = Option(
    __name__,
    title="Enlarge the 64-bit MMIO window",
    phase="P2",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    rollback="shut down, restore the VM configuration, start",
    verified_by="every GPU has its BARs (guest.bars), and `nvidia-smi` lists as many GPUs as the bus",
    changes=("vm.args", "vm.bios", "vm.qemu_args", "guest.gpus", "guest.gpu_count_smi", "guest.bars"),
    judge=judge,
    scripted=True,
)
