"""Cells of nvidia-smi, and the sentences it prints instead of an answer.

https://docs.nvidia.com/deploy/nvidia-smi/ : "N/A", "[Not Supported]", "[Unknown Error]", "ERR!" and the like stand
for a missing value, never for zero.
"""

import re
from functools import lru_cache

LINE_CAP = 4000
ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")

_QUOTE = re.compile(r"^\s{0,8}(?:>\s?)+")
# Terminal styling without its ESC byte, which pastes lose.
_STYLE = re.compile(r"\[(?:\d{1,2}(?:;\d{1,2})?)?m")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")
_UNSAID = re.compile(
    r"\[?(?:n/?a|not supported|not available|insufficient permissions|no permission|requested functionality"
    r" has been deprecated|gpu requires reset)\]?|-?"
)
_ERROR = re.compile(r"\[?(?:unknown error|gpu is lost|err!|unknown)\]?")
_SWITCH = {"enabled": True, "disabled": False, "on": True, "off": False, "yes": True, "no": False}
_FAILED = re.compile(
    r"NVIDIA-SMI (?:has failed|couldn't)|Failed to initialize NVML|nvidia-smi: (?:command )?not found|"
    r"command not found: nvidia-smi"
)


def unquoted(line: str) -> str:
    """The line without mail quoting ("> ") and remains of terminal styling, cut at LINE_CAP."""
    bare = line[:LINE_CAP]
    if ">" in bare:
        bare = _QUOTE.sub("", bare)
    return _STYLE.sub("", bare) if "m" in bare and "[" in bare else bare


@lru_cache(maxsize=1024)  # every GPU's block holds the same few cells
def cell_text(cell: str) -> str | None:
    """The cell's text, None where it stands for "no value"."""
    text = cell.strip()
    low = text.lower()
    return None if _UNSAID.fullmatch(low) or _ERROR.fullmatch(low) else text


def is_error(cell: str) -> bool:
    return bool(_ERROR.fullmatch(cell.strip().lower()))


@lru_cache(maxsize=1024)
def number(cell: str) -> float | None:
    """94.68 from "94.68 W"."""
    text = cell_text(cell)
    match = _NUMBER.match(text) if text else None
    return float(match[0]) if match else None


def whole(cell: str) -> int | None:
    """143771 from "143771 MiB", 16 from "16x"."""
    value = number(cell)
    return None if value is None else int(value)


def switch(cell: str) -> bool | None:
    """True for "Enabled" and "On"; an asterisk marks a change that waits for a reset."""
    return _SWITCH.get(cell.strip().rstrip("*").lower())


def failure(text: str) -> str | None:
    """The sentence with which nvidia-smi or the shell refuses any answer."""
    match = _FAILED.search(text)
    if match is None:
        return None
    begin = text.rfind("\n", 0, match.start()) + 1
    return text[begin:].partition("\n")[0].strip()[:200]


def no_devices(text: str) -> bool:
    return "No devices were found" in text
