"""Which GPUs a program measured, by its own header, and whether the guest that was read has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.facts import Fact
from agents.facts.bench import ALLREDUCE, CONTENTION, COPY, NCCL_SWEEP
from agents.facts.gpu import GPUS
from agents.facts.kernels import LAUNCH, MEMORY
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import of_one_epoch

MEASURED: tuple[Fact[Any], ...] = (COPY, ALLREDUCE, CONTENTION, NCCL_SWEEP, MEMORY, LAUNCH)


def names_measured(facts: Facts, fact: Fact[Any]) -> frozenset[str]:
    """Empty where the header names none: a CPU's figures, or another program's."""
    result = facts.value(fact)
    text = result.environment.get("gpus", "") if result else ""
    return frozenset(name for name in text.split(", ") if name)


def elsewhere(facts: Facts) -> Iterator[tuple[Fact[Any], frozenset[str]]]:
    """Measurements of cards none of which the guest has, with the cards' names.

    By name alone: UUIDs are hidden in one output and bare in another. A MIG instance has its card's name
    with more behind it.
    """
    listed = tuple(_plain(gpu.name) for gpu in facts.value(GPUS) or () if gpu.name)
    for fact in MEASURED if listed else ():
        names = names_measured(facts, fact)
        here = any(_plain(name).startswith(listed) for name in names)
        if names and not here and of_one_epoch(facts, fact, GPUS):
            yield fact, names


def _plain(name: str) -> str:
    """Drivers before 470 leave the maker out of the name (nvidia-smi)."""
    return name.removeprefix("NVIDIA ")
