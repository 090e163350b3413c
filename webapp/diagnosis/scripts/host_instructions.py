"""Kernel options of the host, written out for its admin: the file, the line, how it is taken over, the way back.

No script edits a host's boot files or reserves its memory. A VM with `hugepages: 1024` does not start where the
pages are not there, so the kernel command line comes first.

Sources: proxmox-boot-tool(8); GRUB manual, GRUB_CMDLINE_LINUX_DEFAULT; Linux kernel parameters, hugepagesz= and
hugepages=; qm.conf(5), hugepages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.facts.host import BOOT_LOADER, CONFIGURED_CMDLINE, HOST_CMDLINE, BootLoader
from agents.facts.platform import HOST_NUMA_NODES
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.option import Option
from webapp.diagnosis.scripts.model import ScriptError
from webapp.diagnosis.scripts.outside_proxmox import Instruction
from webapp.diagnosis.scripts.values import checked
from webapp.diagnosis.scripts.vm_state import vm_state

KEEP_GIB = 16
"""Memory that must stay for the host itself beside the reserved pages; our choice."""

_WORTH_IT = {OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE}
_PLAIN = re.compile(r"[\w.,:=/@%+-]{1,120}")  # words of a command line that may be shown to be copied
_NOT_OPTIONS = ("BOOT_IMAGE=", "initrd=", "root=")  # what the loader itself adds, or both have
_SOURCE = "proxmox-boot-tool(8); GRUB manual; Linux kernel parameters"
_UNTRIED = "Written from the sources named; not run here."


@dataclass(frozen=True, slots=True)
class _BootFile:
    """path: the file that holds the kernel options. line: what is edited in it. refresh: the command after it."""

    path: str
    line: str
    refresh: str
    check: str


_GRUB = _BootFile(
    "/etc/default/grub",
    "GRUB_CMDLINE_LINUX_DEFAULT, inside its quotation marks",
    "update-grub",
    "`update-grub` ends without an error",
)
_FILES = {
    BootLoader.SYSTEMD_BOOT: _BootFile(
        "/etc/kernel/cmdline",
        "its one line, at the end",
        "proxmox-boot-tool refresh",
        "`proxmox-boot-tool status` lists every boot partition without an error: refresh passes over one that cannot "
        "be mounted and says nothing",
    ),
    BootLoader.GRUB_UEFI: _GRUB,
    BootLoader.GRUB_BIOS: _GRUB,
}


def host_instructions(result: Diagnosis) -> Mapping[str, Instruction]:
    """By option id: what the host's admin types for each option that needs a kernel option and is worth it here."""
    worth = (option for option in all_options() if result.advice[option.id].status in _WORTH_IT)
    return {option.id: _instruction_for(result.facts, option) for option in worth if option.kernel_option}


def _instruction_for(facts: Facts, option: Option) -> Instruction:
    words = option.kernel_option
    if words.startswith("hugepagesz="):
        return _hugepages(facts, option)
    steps = (*_boot_steps(facts, words), "reboot the host: every VM on it stops", _check_step(words))
    return _instruction(facts, option.id, words, steps, _undo_step(facts, words))


def _instruction(facts: Facts, option_id: str, words: str, steps: tuple[str, ...], rollback: str) -> Instruction:
    loader = _loader(facts)
    title = f"{words}, boot loader {loader}" if loader in _FILES else f"{words}, boot loader not read"
    return Instruction(option_id, title, steps, _new_line(facts, words), rollback, _SOURCE, _UNTRIED)


def _loader(facts: Facts) -> BootLoader:
    return facts.value(BOOT_LOADER) or BootLoader.UNKNOWN


def _boot_steps(facts: Facts, words: str) -> tuple[str, ...]:
    """Up to the reboot, for the loader that starts this host; for both where it is not known."""
    file = _FILES.get(_loader(facts))
    if file is None:
        return (
            "find out what starts the host: `efibootmgr -v` and `proxmox-boot-tool status`; without UEFI it is GRUB. "
            "The file of the other loader changes nothing",
            f"with systemd-boot: add `{words}` to /etc/kernel/cmdline, then `proxmox-boot-tool refresh`",
            f"with GRUB: add `{words}` to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then `update-grub`",
            _pending_options(facts),
        )
    return (
        f"keep the file: `cp {file.path} /root/{file.path.rpartition('/')[2]}.before`",
        f"add `{words}` to `{file.path}`: {file.line}",
        _pending_options(facts),
        f"`{file.refresh}`; {file.check}",
    )


def _undo_step(facts: Facts, words: str) -> str:
    file = _FILES.get(_loader(facts))
    if file is None:
        return f"take `{words}` out of the file again, `proxmox-boot-tool refresh` or `update-grub`, reboot the host"
    backup = f"/root/{file.path.rpartition('/')[2]}.before"
    return f"take `{words}` out of `{file.path}` (it was kept as {backup}), `{file.refresh}`, reboot the host"


def _check_step(words: str) -> str:
    return f"see that it runs with it: `cat /proc/cmdline` has `{words}`"


def _file_options(facts: Facts) -> str | None:
    """The options in the file of this host's loader; None where they were not read."""
    both = facts.value(CONFIGURED_CMDLINE)
    if both is None or _loader(facts) is BootLoader.UNKNOWN:
        return None
    return both.kernel_cmdline if _loader(facts) is BootLoader.SYSTEMD_BOOT else both.grub


def _options(line: str) -> list[str]:
    return [word for word in line.split() if not word.startswith(_NOT_OPTIONS)]


def _pending_options(facts: Facts) -> str:
    """What else the next boot changes: the file against the command line that runs."""
    configured, best = _file_options(facts), facts.best(HOST_CMDLINE)
    running = best.reading.value if best and best.reading.complete else None
    if configured is None or running is None:
        return "compare the file with `cat /proc/cmdline`: what differs changes at the same reboot, too"
    added = [word for word in _options(configured) if word not in running.split()]
    gone = [word for word in _options(running) if word not in (*configured.split(), "ro", "rw")]
    if not added and not gone:
        return "nothing else waits in that file: it has the options that the host runs with"
    if not all(_PLAIN.fullmatch(word) for word in (*added, *gone)):
        return "the file and `cat /proc/cmdline` differ: look what else changes at the same reboot"
    new = f"`{' '.join(added)}` begins to hold" if added else ""
    old = f"`{' '.join(gone)}` is gone" if gone else ""
    return f"something else waits for the same reboot: {' and '.join(filter(None, (new, old)))}"


def _new_line(facts: Facts, words: str) -> str:
    """The line as it becomes; … for what is there now and was not read, or is not plain."""
    if _loader(facts) in {BootLoader.GRUB_UEFI, BootLoader.GRUB_BIOS}:
        return f'GRUB_CMDLINE_LINUX_DEFAULT="… {words}"'
    now = _file_options(facts) or ""
    plain = bool(now) and all(_PLAIN.fullmatch(word) for word in now.split())
    return f"{now if plain else '…'} {words}"


def _hugepages(facts: Facts, option: Option) -> Instruction:
    """Pages of 1 GiB for all of the VM's memory: first on the host's command line, then in the VM."""
    vmid, gib = _vm_memory(facts)
    words = option.kernel_option if gib is None else option.kernel_option.replace("=N", f"={gib}")
    free = "`cat /sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages`"
    steps = (
        _memory_check(facts, gib),
        *_boot_steps(facts, words),
        "reboot the host: every VM on it stops. The pages are taken from it whether the VM runs or not",
        f"{free} says {gib if gib is not None else 'N'} or more: with fewer the VM does not start",
        f"`qm set {vmid} --numa 1 --hugepages 1024`; where it has numaN lines, the memory of each is whole GiB",
        f"`qm shutdown {vmid}`, wait until it is down, `qm start {vmid}`",
    )
    rollback = f"`qm set {vmid} --delete hugepages`, stop and start the VM; then {_undo_step(facts, words)}"
    return _instruction(facts, option.id, words, steps, rollback)


def _vm_memory(facts: Facts) -> tuple[str, int | None]:
    """The VM's id and its memory in GiB; "VMID" and None where they are not known or not whole."""
    try:
        vm = vm_state(facts, None)
        mib = int(checked("a number", vm.get("memory").removeprefix("current=") or "512"))
    except ScriptError:
        return "VMID", None
    return str(vm.id), None if mib % 1024 else mib // 1024


def _memory_check(facts: Facts, gib: int | None) -> str:
    known = [node.memory_mib for node in facts.value(HOST_NUMA_NODES) or ()]
    total = sum(mib for mib in known if mib) // 1024 if known and None not in known else None
    if gib is None:
        return f"N is the VM’s memory in whole GiB (`memory` in its configuration); the host keeps {KEEP_GIB} beside it"
    if total is None:
        return f"the host keeps {KEEP_GIB} GiB for itself beside the {gib} of the VM: `free -g` says what it has"
    if total < gib + KEEP_GIB:
        return f"not as it is: the host has {total} GiB, and {gib} reserved leave it less than {KEEP_GIB}"
    return f"the host has {total} GiB: {gib} for the VM leave it {total - gib}"
