"""The host's machine: vendor, model, processor, sockets.

DMI names from /sys/class/dmi/id or dmidecode(8), lscpu(1) in any language, and the number of physical
packages in /sys/devices/system/cpu.
"""

import re

from agents.facts.host import PLATFORM, Platform
from agents.parsing import dmi, lscpu
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""cd /sys/class/dmi/id 2>/dev/null &&
  for f in sys_vendor product_name board_vendor board_name; do [ -r $f ] && echo "$f: $(cat $f)"; done
command -v lscpu >/dev/null && lscpu
echo sockets: $(cat /sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id | sort -u | wc -l)"""
# util-linux po/*.po, "Socket(s):".
_SOCKETS = re.compile(
    r"^[\s>|]*(?:«?Socket\(?s?\)?»?|Sockel|Gniazd|Soquete\(s\)|Zócalo\(s\)|Сокетов|Сокетів|座|ソケット数|소켓)"
    r"\s*[:：]\s*(\d{1,3})\s*$",
    re.IGNORECASE,
)


def parse(output: Output) -> Readings:
    names, cpu = dmi.parse(output.stdout), lscpu.parse(output.stdout)
    fields = names.fields if names else {}
    sockets = [(n, int(m[1])) for n, line in enumerate(output.lines, 1) if (m := _match_sockets(line))]
    known = [number for number in sockets if number[1] > 0]
    platform = Platform(
        fields.get("sys_vendor") or fields.get("board_vendor"),
        _board(fields.get("product_name"), fields.get("board_name")),
        cpu.model,
        known[0][1] if known else None,
    )
    if platform == Platform():
        if output.tool_missing:
            return (PLATFORM.unsupported("neither DMI names nor lscpu"),)
        if output.refused:
            return (PLATFORM.not_run("reading the machine's names was refused"),)
        return (PLATFORM.unreadable("no name of a machine or processor in the output"),)
    model_line = (cpu.lines["model"],) if "model" in cpu.lines else ()
    lines = {*(names.lines if names else ()), *model_line, *(n for n, _ in known[:1])}
    parts = ("vendor", "board", "cpu", "sockets")
    missing = tuple(part for part in parts if getattr(platform, part) is None)
    return (PLATFORM.known(platform, lines=tuple(sorted(lines)), missing=missing),)


def _match_sockets(line: str) -> re.Match[str] | None:
    return _SOCKETS.match(line[:200])


def _board(product: str | None, board: str | None) -> str | None:
    """The product, and its mainboard where the names differ."""
    if product and board and board not in product:
        return f"{product} (board {board})"
    return product or board


probe = Probe(
    __name__,
    title="Host platform",
    commands=(Command(_SH),),
    supplies=(PLATFORM,),
    parse=parse,
    signature=Signature(
        typed=r"lscpu\b|dmidecode\b|/sys/class/dmi",
        starts=(r"^(?:sys_vendor|product_name|board_name): ", r"^Architecture: ", r"^Architektur: "),
        score=0.6,
        any_machine=True,
    ),
)
