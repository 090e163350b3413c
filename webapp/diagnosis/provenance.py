""" "Why do you say that?": the rule behind an item, its inputs and the source it goes back to."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from agents.facts import Fact

_ROOT = "webapp.diagnosis"
# Where an id is looked for, in this order. "options.pcie_without_q35" says which of two is meant.
_PACKAGES = ("", "gates", "hypotheses", "options", "contradictions", "finding_rules", "compare")
_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")
_STATED = re.compile(r"Source: (.+?)(?:\n\n|\Z)", re.S)
_BRACKETS = re.compile(r"\s*\(([^()]{6,})\)")
_CITES = re.compile(r"\d|/|\.\w|\b(?:manual|guide|catalogue|specification|NVML|parameters?)\b")
# Modules that word, carry or find values and decide nothing.
_PLUMBING = frozenset(
    f"{_ROOT}.{name}" for name in ("advising", "asking", "case", "claim", "facts", "hypothesis", "option", "rule")
)


@dataclass(frozen=True, slots=True)
class Provenance:
    """rule: the module that holds it. docstring: what it says and why. source: the publication or
    program it goes back to. inputs: ids of the facts that it reads, sorted."""

    rule: str
    docstring: str
    source: str
    inputs: tuple[str, ...]

    @property
    def says(self) -> tuple[str, ...]:
        """The docstring's paragraphs without its sources, which are shown by themselves."""
        paragraphs = self.docstring.split("\n\n")
        if not _STATED.search(self.docstring):
            return tuple(_BRACKETS.sub(_no_citation, text) for text in paragraphs)
        return tuple(text for text in paragraphs if not text.startswith("Source:"))


@cache
def provenance(module_or_id: str) -> Provenance | None:
    """module_or_id: "driver", "options.pcie_without_q35" or a whole module name; also the id of a
    finding. None for an id that no rule has (any more)."""
    if not _NAME.fullmatch(module_or_id):
        return None
    found = _module(module_or_id) or _finding(module_or_id)
    if found is None:
        return None
    doc = inspect.cleandoc(found.__doc__ or "")
    return Provenance(found.__name__, doc, _source(found, doc), _inputs(found))


def _module(name: str) -> ModuleType | None:
    short = name.removeprefix(f"{_ROOT}.")
    places = [short] if "." in short else [f"{p}.{short}".lstrip(".") for p in _PACKAGES]
    return next((m for place in places if (m := _imported(f"{_ROOT}.{place}"))), None)


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _finding(finding_id: str) -> ModuleType | None:
    """The module whose rules make a finding of this id."""
    for name in ("after", "speed", "guest", "host"):
        module = importlib.import_module(f"{_ROOT}.finding_rules.{name}")
        if f'"{finding_id}"' in inspect.getsource(module):
            return module
    return None


def _source(module: ModuleType, doc: str) -> str:
    """The docstring's "Source:", else the sources in its brackets, else the module's own SOURCE."""
    stated = _STATED.search(doc)
    if stated:
        return " ".join(stated[1].split()).rstrip(".")
    cited = [" ".join(text.split()) for text in _BRACKETS.findall(doc) if _CITES.search(text)]
    return "; ".join(cited) or str(getattr(module, "SOURCE", ""))


def _no_citation(bracket: re.Match[str]) -> str:
    return "" if _CITES.search(bracket[1]) else bracket[0]


def _inputs(module: ModuleType) -> tuple[str, ...]:
    """Facts that the module names, and those of the modules whose functions it calls."""
    called = {
        value.__module__
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__module__.startswith(_ROOT)
    }
    modules = [module, *(importlib.import_module(name) for name in sorted(called - _PLUMBING))]
    return tuple(sorted({fact for each in modules for fact in _facts_of(each)}))


def _facts_of(module: ModuleType) -> set[str]:
    return {value.id for value in vars(module).values() if isinstance(value, Fact)}
