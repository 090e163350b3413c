"""The recogniser's result: the parts of a text, and the lines that belong to none."""

from dataclasses import dataclass

from agents.probe import Readings


@dataclass(frozen=True, slots=True)
class Part:
    """first and last: 1-based lines of the whole text. exit_code: 127 when a shell says that the tool is
    missing, else None. cut: a mark beside the part ("...", --More--) says that there was more. readings: the
    reader's result, where the recogniser parsed the part already. unsure: any machine could have printed it,
    and neither a person nor the text says which one did."""

    first: int
    last: int
    reader: str
    confidence: float
    text: str
    exit_code: int | None = None
    cut: bool = False
    readings: Readings | None = None
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class Recognition:
    """unrecognised: (first, last) lines nobody could place; blank lines and bare prompts are not."""

    parts: tuple[Part, ...] = ()
    unrecognised: tuple[tuple[int, int], ...] = ()
