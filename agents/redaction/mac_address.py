"""Hardware addresses of network devices: Ethernet (6 bytes), EUI-64 (8), InfiniBand (20), GUIDs."""

import re
from collections.abc import Iterator

from agents.redactor import Redactor, Span, clue, spans

# Searched by the first separator; a look-behind checks the byte before it.
_GROUPS = re.compile(
    r"(?P<by>[:-])(?<=[0-9A-Fa-f]{2}[:-])(?<![\w:.-][0-9A-Fa-f]{2}[:-])"
    r"[0-9A-Fa-f]{2}(?:(?P=by)[0-9A-Fa-f]{2}){4,18}(?![\w:]|-\w)"
)
_OTHERS = (
    # ibstat, ibv_devinfo: "Node GUID: 0xb8cef603000abcde", "node_guid: b8ce:f603:000a:bcde".
    clue(
        r"(?i)\b(?:node|port|sys(?:tem)?[ _]?image)[ _]?guid\"?[ \t]*[:=][ \t]*\"?"
        r"(?:0x)?(?P<address>[0-9a-f]{16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3})\b",
        "guid",
    ),
    # systemd's name of an adapter that has no slot: enx and its address.
    clue(r"\benx(?P<address>[0-9a-f]{12})\b", "enx"),
)
_SIZES = (6, 8, 20)


def find(text: str) -> Iterator[Span]:
    for match in _GROUPS.finditer(text):
        start, end = match.start() - 2, match.end()
        digits = re.sub("[:-]", "", text[start:end]).lower()
        # All zeros and the broadcast address belong to nobody.
        if len(digits) // 2 in _SIZES and set(digits) not in ({"0"}, {"f"}):
            yield start, end
    yield from spans(_OTHERS, text, "address")


redactor = Redactor(__name__, find)
