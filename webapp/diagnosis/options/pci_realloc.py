"""Lets Linux hand out BARs again after the firmware.

A workaround: with too few address bits it only changes which GPUs go without.

Source: Linux kernel parameters, pci=realloc.
"""

from agents.facts.gpu import BAR_FAILURES
from agents.facts.platform import KERNEL_CMDLINE
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because

SOURCE = "Linux kernel parameters, pci=realloc"


def judge(case: Case) -> Advice:
    facts = case.facts
    if facts.value(KERNEL_CMDLINE, where=lambda line: "pci=realloc" in line):
        text = "the guest booted with pci=realloc; it is about address space, not about P2P"
        return advise(OptionStatus.DONE, because(text, SOURCE, facts.refs(KERNEL_CMDLINE)))
    if case.supported("bar_space_shortage"):
        text = "a workaround after address bits and window: it may change which GPUs get space"
        return advise(OptionStatus.POSSIBLE, because(text, SOURCE, facts.refs(BAR_FAILURES)))
    text = "only for GPUs that get no address space; nothing to do with P2P"
    return advise(OptionStatus.NO_EFFECT, because(text, SOURCE))


option = Option(
    __name__,
    title="pci=realloc on the guest’s kernel command line",
    phase="P2",
    actor=Actor.OPERATOR,
    downtime=Restart.GUEST,
    rollback="remove it from the command line and reboot the guest",
    verified_by="every GPU has its BARs, and `nvidia-smi` lists as many GPUs as the bus",
    changes=("guest.kernel_cmdline", "guest.gpus", "guest.gpu_count_smi", "guest.bars"),
    judge=judge,
    by_hand="In the guest, as root: add `pci=realloc` to GRUB_CMDLINE_LINUX in /etc/default/grub, run "
    "`update-grub` (elsewhere `grub2-mkconfig -o /boot/grub2/grub.cfg`), and reboot the guest.",
)
