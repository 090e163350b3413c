"""The vocabulary: every fact by id, collected from this package's modules."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from agents.facts.fact import Fact, Reading, ReadingKind, View

__all__ = ["Fact", "Reading", "ReadingKind", "View", "all_facts"]


@cache
def all_facts() -> dict[str, Fact[Any]]:
    """Every fact by id. Raises ValueError when two modules claim one id."""
    facts: dict[str, Fact[Any]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Fact) and facts.setdefault(value.id, value) is not value:
                raise ValueError(f"two facts claim the id {value.id}")
    return facts
