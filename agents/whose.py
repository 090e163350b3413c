"""Which machine printed which lines of a paste: by prompts, by headings, and by the words around them.

A paste may hold two machines' outputs. Lines below "root@pve:~#" are one machine's whatever else the
paste holds, so words of one machine say nothing of the other's lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents.facts import View
from agents.parsing.terminal import Kind, Line
from agents.reader import role_of_text, role_of_words, says_both

_HEADING_CHARS = 60
# How far above an output its heading may stand, blank lines and a fence between.
_HEADING_LINES = 4
_HOSTS_NAME = re.compile(r"@(?:pve|proxmox|hypervisor)[\d-]*(?:\.|$)")
# A machine's words stand early; a log of megabytes need not be searched whole.
_SEARCHED = 300_000


@dataclass(frozen=True, slots=True)
class Owner:
    """role None: nothing tells. named: a prompt or a heading sets these lines apart from others."""

    role: View | None
    named: bool


def owners(raw: Sequence[str], lines: Sequence[Line]) -> list[Owner]:
    """For each line the machine that its prompt, its heading or the words of its section tell."""
    sections = _sections(lines)
    texts: dict[str, list[str]] = {}
    for name, line in zip(sections, raw, strict=True):
        texts.setdefault(name, []).append(line)
    alone = len(texts) == 1
    found = {name: _owner(name, text, alone) for name, text in texts.items()}
    return [found[name] for name in sections]


def _owner(name: str, text: list[str], alone: bool) -> Owner:
    """A whole text with a host's words only is as good as one below the host's prompt: guests' outputs
    have words of their own. The other way round, a host's list of groups or ports has none."""
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
    """The name of each line's section: its machine by the prompt, or what a heading says; "" where
    neither stands above."""
    names: list[str] = []
    name = ""
    for line in lines:
        if line.machine:
            name = f"@{line.machine}"
        elif said := _said_by_heading(line):
            name = f"#{said.value}"
        names.append(name)
    return names


def _said_by_heading(line: Line) -> View | None:
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
