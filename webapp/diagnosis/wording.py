"""How ranges, gains and causes read in a sentence."""

import re
from collections.abc import Iterable, Mapping

from agents.facts.host import BootLoader
from agents.facts.platform import MachineType
from webapp.diagnosis.case import Bound, Gate, GateState
from webapp.diagnosis.claim import Range

_CODE = re.compile(r"(`+[^`]+`+)")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)|(?<=s)'(?=[\s,.;:)]|$)")
_QUOTED = re.compile(r'(?<![\w"])"([^"\s](?:[^"\n]*[^"\s])?)"(?!")')


def typeset(text: str) -> str:
    """The apostrophes and quotation marks of a docstring as those of every other text on a page; what
    stands in backticks is code and stays."""
    pieces = _CODE.split(text)
    pieces[::2] = [_QUOTED.sub(r"“\1”", apostrophes(piece)) for piece in pieces[::2]]
    return "".join(pieces)


def apostrophes(text: str) -> str:
    return _APOSTROPHE.sub("’", text)


def span(value: Range, digits: int | None = None) -> str:
    """ "2.1–30.0", or "90.9" when both ends read the same: both have the same decimals.

    digits: of both, else by size: none for whole numbers and from 100 on, two below 2, else one.
    """
    count = _decimals(value) if digits is None else digits
    low, high = (f"{end:.{count}f}" for end in value)
    return low if low == high else f"{low}–{high}"


def _decimals(value: Range) -> int:
    """What a reader needs of the smaller end that is not nothing, so that 6.5–120.0 keeps its half."""
    if all(float(end).is_integer() for end in value):
        return 0
    least = min((abs(end) for end in value if end), default=0.0)
    if least >= 100:
        return 0
    return 1 if max(abs(end) for end in value) >= 2 else 2


def typed_range(value: Range, unit: float = 1.0) -> str:
    """A range that a person gave, with the digits they gave it: "211–250", "10.50–12.25"."""
    ends = [f"{end / unit:.4g}" for end in value]
    count = max(len(end.partition(".")[2]) for end in ends)
    low, high = (f"{float(end):.{count}f}" if count else end for end in ends)
    return low if low == high else f"{low}–{high}"


def factor(value: Range) -> str:
    """A gain as a range: "1.00–1.40 ×", with these digits wherever it stands."""
    return f"{span(value, 2)} ×"


def most(value: Range) -> str:
    """A gain's high end, after "at most": "1.49 ×"."""
    return f"{value[1]:.2f} ×"


def unless(bound: Bound) -> str:
    """What would break the bound, to follow any gain that is said; "" where nothing is left open."""
    return f", {bound.unless}" if bound.unless else ""


def effects(bounds: Iterable[Bound]) -> str:
    """What P2P could bring, by load: "1.00–1.40 × for a single stream, 1.00–1.12 × at 64 requests"."""
    gains = [f"{factor(bound.max_gain_p2p)} {load(bound)}" for bound in bounds if bound.max_gain_p2p]
    return ", ".join(gains)


def load(bound: Bound) -> str:
    return "for a single stream" if bound.concurrency == 1 else f"at {bound.concurrency} requests"


# What values for programs are called, by the type of the value; the others are names already.
_CALLED: Mapping[type, Mapping[object, str]] = {
    bool: {True: "yes", False: "no"},
    MachineType: {MachineType.I440FX: "i440FX", MachineType.OTHER: "another board"},
    BootLoader: {
        BootLoader.GRUB_UEFI: "GRUB, started by UEFI",
        BootLoader.GRUB_BIOS: "GRUB, started by a BIOS",
        BootLoader.UNKNOWN: "not known",
    },
}


def called(value: object) -> str:
    """A plain value as a sentence has it: "i440FX", "yes"."""
    names = _CALLED.get(type(value))
    return names.get(value, str(value)) if names else str(value)


# What people said of the host, by the values of the first step's answers.
_SAID = {
    "guest": "the guest",
    "vm": "the VM",
    "host": "the host",
    "bare metal": "the VM itself",
    "ask admin": "its admin can be asked",
}


def answer_words(*answers: str) -> str:
    """ "the guest, the VM"; "to be asked" where nothing was said."""
    return ", ".join(_SAID.get(answer, answer) for answer in answers) or "to be asked"


def why_no_clique(ladder: Iterable[Gate]) -> str:
    """ "because" once a clique was looked for and is absent; before, the driver's answer points to it."""
    absent = any(g.gate == "granted" and g.state is GateState.FAIL for g in ladder)
    return "because" if absent else "most likely because"


def percent(value: Range) -> str:
    """Shares 0…1 as "2.3–33.0 %"; with one digit where one of them is below 10 %."""
    return f"{span((value[0] * 100, value[1] * 100), 1 if value[0] < 0.1 else 0)} %"
