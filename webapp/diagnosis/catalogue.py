"""Finds hypotheses, gates and options by walking their packages."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.option import Option
from webapp.diagnosis.rung import Rung

Listed = TypeVar("Listed", bound=Callable[..., Any])

_LISTS: list[Callable[[], None]] = []


def listed(function: Listed) -> Listed:
    """Keeps what a list read from the catalogue says, until `read_again`."""
    cached = cache(function)
    _LISTS.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


def read_again() -> None:
    """Forgets every list: the packages are walked anew. For a file that was added while this runs."""
    for forget in _LISTS:
        forget()


def declarations(package: str, name: str) -> tuple[Any, ...]:
    """What each module of the package calls `name`, in order of module."""
    path = importlib.import_module(package).__path__
    modules = (importlib.import_module(f"{package}.{info.name}") for info in pkgutil.iter_modules(path))
    return tuple(getattr(module, name) for module in modules)


@listed
def all_hypotheses() -> tuple[Hypothesis, ...]:
    """In order of id."""
    return declarations("webapp.diagnosis.hypotheses", "hypothesis")


@listed
def all_rungs() -> tuple[Rung, ...]:
    """From the foot of the ladder."""
    rungs: tuple[Rung, ...] = declarations("webapp.diagnosis.gates", "rung")
    return tuple(sorted(rungs, key=lambda rung: rung.place))


@listed
def all_options() -> tuple[Option, ...]:
    """In order of phase, then id."""
    options: tuple[Option, ...] = declarations("webapp.diagnosis.options", "option")
    return tuple(sorted(options, key=lambda option: (option.phase, option.id)))
