"""Owner detection: which machine printed which lines of a paste, by prompts, headings and nearby words.

A paste may hold two machines' outputs. The lines below "root@pve:~#" belong to one machine whatever else the
paste holds, so one machine's words say nothing about the other's lines.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents.facts import View
from agents.parsing.terminal import Kind, Line
from agents.role_words import role_of_text, role_of_words, says_both

_HEADING_CHARS = 60
# How far above an output its heading may stand, blank lines and a fence between.
_HEADING_LINES = 4
_HOSTS_NAME = re.compile(r"@(?:pve|proxmox|hypervisor)[\d-]*(?:\.|$)")
# A machine's words stand early, so a log of megabytes is not searched to its end.
_SEARCHED = 300_000


@dataclass(frozen=True, slots=True)
class Owner:
    """role None: unknown. named: a prompt or a heading separates these lines from others."""

    role: View | None
    named: bool


def owners(raw: Sequence[str], lines: Sequence[Line]) -> list[Owner]:
    """The owner of each line, by its prompt, its heading or the words of its section."""
    sections = _sections(lines)
    texts: dict[str, list[str]] = {}
    for name, line in zip(sections, raw, strict=True):
        texts.setdefault(name, []).append(line)
    alone = len(texts) == 1
    by_section = {name: _owner(name, text, alone) for name, text in texts.items()}
    return [by_section[name] for name in sections]


def _owner(name: str, text: list[str], alone: bool) -> Owner:
    """A whole text that holds only a host's words counts like one below the host's prompt, because a guest's
    outputs have words of their own. The reverse does not hold: a host's list of groups or ports has no such words."""
    role = _role(name, text)
    sure = alone and role is View.HOST and not says_both("\n".join(text)[:_SEARCHED])
    return Owner(role, bool(name) or sure)


def heading(lines: Sequence[Line], first: int, placed: Collection[int]) -> str:
    """The text right above a line, unless it belongs to another output; "" where there is none."""
    for position in range(first - 1, max(-1, first - _HEADING_LINES), -1):
        text = lines[position].text
        if position in placed:
            break
        if text and not text.startswith(("```", "~~~")):
            return text
    return ""


def _sections(lines: Sequence[Line]) -> list[str]:
    """The name of each line's section: its machine by the prompt or by a heading; "" where neither stands
    above."""
    names: list[str] = []
    name = ""
    for line in lines:
        if line.machine:
            name = f"@{line.machine}"
        elif role := _role_of_heading(line):
            name = f"#{role.value}"
        names.append(name)
    return names


def _role_of_heading(line: Line) -> View | None:
    """ "## On the Proxmox host", "Inside the VM:"."""
    text = line.text
    if len(text) > _HEADING_CHARS or line.prompted:
        return None
    if line.kind is Kind.BREAK or (text.endswith(":") and line.forms[0][:1].isalpha()):
        return role_of_words(text)
    return None


def _role(name: str, text: list[str]) -> View | None:
    if name.startswith("#"):
        return View(name[1:])
    if _HOSTS_NAME.match(name):
        return View.HOST
    words = "\n".join(text)[:_SEARCHED]
    return None if name and says_both(words) else role_of_text(words)
