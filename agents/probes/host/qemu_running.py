"""The command line of every running QEMU process: it shows the VM as it runs, not as configured.

/proc/PID/cmdline. The host masks values that may be secret.
"""

from agents.facts import Reading
from agents.facts.vm import QEMU_COMMANDS, QemuCommand
from agents.parsing import qemu_command
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no QEMU process runs"
_SH = rf"""n=
for p in /proc/[0-9]*; do
  read -r comm 2>/dev/null <"$p/comm" || continue
  case $comm in kvm | qemu-kvm | qemu-system*) ;; *) continue ;; esac
  [ -r "$p/cmdline" ] && n=1 && echo "### $p/cmdline" || continue
  tr '\0' '\n' <"$p/cmdline" | sed -E 's/((passw[a-z]*|data)=)[^,]*/\1***/g
    s/("(passw[a-z]*|data)":")[^"]*/\1***/g; s/(:key=)[^:,]*/\1***/g; s/(,string=|type=11,).*/\1***/'
  echo
done
[ "$n" ] || echo '{_NONE}'"""


def parse(output: Output) -> Readings:
    running = qemu_command.parse(output.stdout)
    if running:
        commands = tuple(item.command for item in running)
        lines = tuple(number for item in running for number in item.lines[:1])
        missing = tuple(dict.fromkeys(m for command in commands for m in _missing(command)))
        missing += ("the end of the output",) if output.truncated else ()
        return (QEMU_COMMANDS.known(commands, lines=lines, missing=missing),)
    return (_no_reading(output),)


def _missing(command: QemuCommand) -> tuple[str, ...]:
    """What the command line lacks: a whole one names its machine, and a part proves no absence."""
    whose = f"VM {command.vm_id}" if command.vm_id is not None else "the VM"
    return () if command.machine else (f"arguments of {whose}: this is a part of its command line",)


def _no_reading(output: Output) -> Reading[tuple[QemuCommand, ...]]:
    if output.tool_missing:
        return QEMU_COMMANDS.unsupported("no /proc to read processes from")
    if _NONE in output.stdout:
        return QEMU_COMMANDS.absent(_NONE)
    if output.refused:
        return QEMU_COMMANDS.not_run("reading the processes was refused; root may")
    why = "no QEMU command line in the output" if output.stdout.strip() else "no output"
    return QEMU_COMMANDS.unreadable(why)


probe = Probe(
    __name__,
    title="Running QEMU command lines",
    commands=(Command(_SH, root=True),),
    supplies=(QEMU_COMMANDS,),
    parse=parse,
    signature=Signature(
        typed=r"qm\s+showcmd\b|/proc/\S+/cmdline\b|(?:ps|pgrep)\b.*(?:kvm|qemu)",
        starts=(
            r"(?:^|[\s/])(?:kvm|qemu-kvm|qemu-system-[\w-]+)\s+(?:\\$|-{1,2}[a-z])",
            r"^\s*(?:\d+[:-]\s*)?['\"]?-device ['\"]?(?:vfio-pci|\{)",
            r"^\s*(?:\d+[:-]\s*)?-object ['\"]?iommufd",
            r"^#+ /proc/\d+/cmdline",
            r"^\S*/(?:kvm|qemu-kvm|qemu-system-[\w-]+)$",
        ),
        belongs=r"^\s*(?:\d+[:-]\s*)?['\"]?-{1,2}[a-z]|\\$|^[\w./{}\[\]\"=,:+-]+$",
        with_command=True,
    ),
    cap_kib=1024,
    root_adds="the processes of other users, where the host hides them",
    left_out="values that may be secret: passwords, keys, data, OEM strings",
)
