"""IPv4 and IPv6 addresses, but no version numbers, times or PCI addresses."""

import ipaddress
import re
from collections.abc import Iterator

from agents.redactor import Redactor, Span

# Each pattern begins with the text it is searched by; a look-behind comes after that.
_V4 = re.compile(r"\d(?<![\w.+~]\d)(?<!==\d)(?<![A-Za-z_]-\d)\d{0,2}(?:\.\d{1,3}){3}(?![\w+~]|\.\w)")
# Only the ranges in use, so that no C++ name ("c10::") and no list of numbers matches.
_V6 = re.compile(
    r"[23fF](?<![\w.].)(?:(?<=[23])[0-9A-Fa-f]|[c-fC-F])[0-9A-Fa-f]{2}:"
    r"(?:[0-9A-Fa-f]{0,4}:){1,6}[0-9A-Fa-f]{0,4}(?![\w:])"
)
_V6_IN_LINE = re.compile(r"::|(?::[0-9A-Fa-f]{1,4}){6}:")
# Library and firmware versions may have four parts: "cuDNN version: 9.8.0.87", "[conda] cublas 12.4.5.8".
_VERSION_BEFORE = re.compile(
    r"(?i)(?:\b(?:version|ver|release|firmware|fw|bios|cudnn|revision|rev)\b[^\n]{0,16}"
    r"|^[ \t|>!]*(?:\[(?:pip3?|conda)\]|ii )[^\n]*|\bnvidia-[a-z0-9-]+[ \t]+v?)$"
)


def find(text: str) -> Iterator[Span]:
    for match in _V4.finditer(text):
        if _is_someones_v4(match[0]) and not _is_version(text, match.start()):
            yield match.span()
    end = 0
    while sign := _V6_IN_LINE.search(text, end):
        start = text.rfind("\n", end, sign.start()) + 1 or end
        end = text.find("\n", sign.end())
        end = end if end >= 0 else len(text)
        for match in _V6.finditer(text, start, end):
            if _is_v6(match[0]):
                yield match.span()


def _is_someones_v4(address: str) -> bool:
    """Whether the address belongs to somebody: not loopback, any or a mask; leading zeros make no address."""
    octets = address.split(".")
    valid = all(int(octet) < 256 and (octet == "0" or octet[0] != "0") for octet in octets)
    return valid and octets[0] not in ("0", "127", "255")


def _is_version(text: str, start: int) -> bool:
    begin = max(0, start - 200)
    line = text[text.rfind("\n", begin, start) + 1 or begin : start]
    return _VERSION_BEFORE.search(line) is not None


def _is_v6(address: str) -> bool:
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


redactor = Redactor(__name__, find)
