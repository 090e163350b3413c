"""The firmware's names for this machine: /sys/class/dmi/id, or dmidecode and kernel lines in a paste.

In a QEMU guest the names show the emulated board; the VM's owner can set them freely.
"""

from agents.facts import Reading
from agents.facts.platform import DMI, MACHINE_TYPE, PRODUCT_UUID, VIRT_KIND, MachineType
from agents.parsing import dmi
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""cd /sys/class/dmi/id || { echo "no DMI tables"; exit 0; }
for f in sys_vendor product_name product_version board_vendor board_name bios_vendor bios_version \
  chassis_vendor; do [ ! -r $f ] || echo "$f: $(cat $f)"; done"""

_FACTS = (DMI, MACHINE_TYPE, VIRT_KIND, PRODUCT_UUID)


def parse(output: Output) -> Readings:
    names = dmi.parse(output.stdout)
    if names is not None:
        missing = ("the names after the cut",) if output.truncated else ()
        if output.alternative < 0 and names.combined in names.fields.values():
            missing = (*missing, "vendor or product: the text shows one of them")
        described = _names_reading(names, missing)
        return (described, _board(names), _kind(names, output.alternative), _uuid(names))
    if "no DMI tables" in output.stdout[:200]:
        why = "the kernel found no DMI tables, as in guests without firmware"
        return (DMI.absent(why), *(f.not_run(why) for f in _FACTS[1:]))
    if output.tool_missing:
        return tuple(f.unsupported("no DMI here") for f in _FACTS)
    why = "no firmware name in the output"
    return tuple(f.unreadable(why) for f in _FACTS)


def _names_reading(names: dmi.Names, missing: tuple[str, ...]) -> Reading[str]:
    board = f"{names.fields.get('board_vendor', '')} {names.fields.get('board_name', '')}".strip()
    parts = (names.combined, f"board {board}" if board and board != names.combined else "")
    text = "; ".join(part for part in parts if part) or "; ".join(names.fields.values())
    return DMI.known(text, lines=names.lines, missing=missing)


def _board(names: dmi.Names) -> Reading[MachineType]:
    board = dmi.machine_type(names)
    if board:
        return MACHINE_TYPE.known(board, lines=names.lines)
    if dmi.virt_kind(names) is None and names.combined:
        return MACHINE_TYPE.not_run("the names are not QEMU's; they may have been set by hand")
    return MACHINE_TYPE.not_run("the names do not tell the board")


def _kind(names: dmi.Names, alternative: int) -> Reading[str]:
    """Only for a paste: on a target guest.virt_kind weighs these names against better signs."""
    kind = dmi.virt_kind(names)
    if alternative >= 0 or kind is None:
        return VIRT_KIND.not_run("guest.virt_kind decides; firmware names alone do not")
    return VIRT_KIND.known(kind, lines=names.lines, missing=("the processor's own word: names can be set by hand",))


def _uuid(names: dmi.Names) -> Reading[str]:
    uuid = dmi.uuid(names.fields.get("product_uuid", ""))
    if uuid:
        return PRODUCT_UUID.known(uuid, lines=names.lines)
    return PRODUCT_UUID.not_run("guest.product_uuid reads it, as root")


probe = Probe(
    __name__,
    title="Firmware names",
    commands=(Command(_SH),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"dmidecode\b(?!.*system-uuid)|/sys/(?:class|devices/virtual)/dmi/id/(?!product_uuid)",
        starts=(
            r"\bHardware name: \S",
            r"^(?:\[[\s\d.]+\] )?DMI: \S.*BIOS",
            r"^# dmidecode \d",
            r"^(?:sys_vendor|product_name|board_vendor): ",
            r"^\s*(?:BIOS|System|Base Board) Information$",
            r"^(?:System Manufacturer|System Model|BIOS Version):\s",
        ),
        belongs=(
            r"^\s+\S|^(?:Handle|SMBIOS|Getting SMBIOS|BIOS|System|Base Board|Chassis)\b|"
            r"^(?:product|board|chassis|bios|sys)_\w+: |^$"
        ),
        score=0.95,
        any_machine=True,
        with_command=True,
    ),
    root_adds="dmidecode's full tables; the names are readable without",
)
