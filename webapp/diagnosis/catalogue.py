"""Finds hypotheses and options by walking their packages."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.option import Option


@cache
def all_hypotheses() -> tuple[Hypothesis, ...]:
    """In order of id."""
    package = importlib.import_module("webapp.diagnosis.hypotheses")
    return tuple(
        importlib.import_module(f"{package.__name__}.{info.name}").hypothesis
        for info in pkgutil.iter_modules(package.__path__)
    )


@cache
def all_options() -> tuple[Option, ...]:
    """In order of phase, then id."""
    package = importlib.import_module("webapp.diagnosis.options")
    found: list[Option] = [
        importlib.import_module(f"{package.__name__}.{info.name}").option
        for info in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(sorted(found, key=lambda option: (option.phase, option.id)))
