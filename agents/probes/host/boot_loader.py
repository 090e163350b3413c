"""The host's boot loader, which decides the file for changes of the kernel command line.

proxmox-boot-tool(8) exits 2 where it manages nothing; efibootmgr(8); LoaderInfo, an EFI variable.
"""

from agents.facts.host import BOOT_LOADER, BootLoader
from agents.parsing import boot_loader
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""[ -d /sys/firmware/efi ] && echo 'firmware: uefi' || echo 'firmware: bios'
[ -e /etc/default/grub ] && echo 'grub: /etc/default/grub'
cd /sys/firmware/efi/efivars 2>/dev/null &&
  for f in LoaderInfo-*; do [ -r "$f" ] && echo "loader info: $(tail -c +5 "$f" | tr -d '\0')"; done
{ command -v proxmox-boot-tool >/dev/null && proxmox-boot-tool status; } 2>&1
{ command -v efibootmgr >/dev/null && efibootmgr -v || :; } 2>&1"""


def parse(output: Output) -> Readings:
    text = f"{output.stdout}\n{output.stderr}"
    boot = boot_loader.parse(text)
    if boot is None:
        if output.tool_missing:
            return (BOOT_LOADER.unsupported("proxmox-boot-tool is not installed"),)
        if output.refused:
            return (BOOT_LOADER.not_run("asking the boot loader was refused"),)
        return (BOOT_LOADER.unreadable("no line about booting in the output"),)
    missing = []
    if boot.loader is BootLoader.UNKNOWN:
        missing.append("firmware (UEFI or BIOS)" if boot.uefi is None else "the entry that was booted")
    missing += [f"a boot partition: {error}" for error in boot.errors[:1]]
    stdout_lines = output.stdout.count("\n") + 1
    lines = tuple(number for number in boot.lines if number <= stdout_lines)
    return (BOOT_LOADER.known(boot.loader, lines=lines, missing=tuple(missing)),)


probe = Probe(
    __name__,
    title="Boot loader of the host",
    commands=(Command(_SH, root=True),),
    supplies=(BOOT_LOADER,),
    parse=parse,
    signature=Signature(
        typed=r"proxmox-boot-tool\s+status|efibootmgr\b|bootctl\b",
        starts=(
            r"^Re-executing '\S*proxmox-boot-tool'",
            r"^System currently booted with ",
            r"^[0-9A-F]{4}-[0-9A-F]{4} is configured with: ",
            r"^BootCurrent: [0-9A-F]{4}",
            r"^E: /etc/kernel/proxmox-boot-uuids",
            r"^EFI variables are not supported",
        ),
        belongs=(
            r"^Boot[0-9A-FN]|^Timeout: |ESP|is configured with: |booted with |espmounts|proxmox-boot|"
            r"^\s+dmesg\(1\)|^mount |^\s+\w[\w ]*: |^EFI variables"
        ),
        any_machine=True,
    ),
    timeout_s=30,
    slow=True,
    root_adds="the boot partitions that proxmox-boot-tool manages",
)
