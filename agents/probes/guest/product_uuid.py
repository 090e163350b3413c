"""The machine's DMI UUID, which matches a guest to its VM (`smbios1: uuid=…`).

Only root can read /sys/class/dmi/id/product_uuid (Linux, drivers/firmware/dmi-id.c).
"""

from agents.facts.platform import PRODUCT_UUID
from agents.parsing import dmi
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""f=/sys/class/dmi/id/product_uuid
if [ -e $f ]; then cat $f; else echo 'no DMI tables'; fi"""

# Boards print these when nobody set a UUID.
_PLACEHOLDERS = ("00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009")


def parse(output: Output) -> Readings:
    for number, line in enumerate(output.lines, 1):
        uuid = dmi.uuid(line)
        if uuid in _PLACEHOLDERS:
            return (PRODUCT_UUID.absent("the firmware holds a placeholder", lines=(number,)),)
        if uuid:
            return (PRODUCT_UUID.known(uuid, lines=(number,)),)
    if output.refused:
        return (PRODUCT_UUID.not_run("only root may read it"),)
    if "no DMI tables" in output.stdout[:200]:
        return (PRODUCT_UUID.absent("the kernel found no DMI tables"),)
    if output.tool_missing:
        return (PRODUCT_UUID.unsupported("no DMI here"),)
    if not output.stdout.strip():
        return (PRODUCT_UUID.not_run("no output; only root may read it"),)
    return (PRODUCT_UUID.unreadable("no UUID in the output"),)


probe = Probe(
    __name__,
    title="Machine UUID",
    commands=(Command(_SH, root=True),),
    supplies=(PRODUCT_UUID,),
    parse=parse,
    signature=Signature(typed=r"product_uuid|dmidecode\b.*system-uuid", starts=(), any_machine=True),
    root_adds="the UUID that names this machine's VM on the host",
)
