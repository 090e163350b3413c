"""No pattern of a reader or parser takes more than linear time on a line made of one thing repeated."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from functools import cache

import pytest

import agents
from agents.probe import Output
from agents.probes import all_probes
from agents.readers import all_readers
from webapp.diagnosis.contradictions import total_as_output, weights_size

_UNITS = [" ", ".", "1", "1 ", "1.", "> ", ",", "a", "a ", "-", "a=", '"', "GPU0 ", "| ", "a: ", "/"]
_UNITS += ["[", "<", " a=b", "\\", "0000:01:00.0 ", "12 KB ", "x.y"]
# Exponential cost shows on the short line, a power of the length on the long one.
_LENGTHS = (26, 200)


def _of_values(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _of_values(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _of_values(item)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for info in pkgutil.walk_packages(agents.__path__, "agents."):
        if ".payloads" not in info.name:
            for value in vars(importlib.import_module(info.name)).values():
                found |= {pattern.pattern: pattern for pattern in _of_values(value)}
    for reader in all_readers():
        signature = (reader.typed, reader.belongs, reader.anchored, *reader.floating)
        found |= {pattern.pattern: pattern for pattern in signature if pattern}
    return found


@pytest.mark.parametrize("unit", _UNITS)
def test_one_thing_repeated_is_soon_searched(unit: str) -> None:
    for length in _LENGTHS:
        line = unit * (length // len(unit)) + "\x01"
        for text, pattern in _patterns().items():
            began = time.process_time()
            pattern.search(line)
            assert time.process_time() - began < 1, text


@pytest.mark.parametrize("unit", ["\n", " \n", "1" + " " * 5_000, "0 "])
def test_a_text_of_one_thing_repeated_is_soon_parsed(unit: str) -> None:
    text = unit * (20_000 // len(unit)) + "!"
    for name, probe in all_probes().items():
        began = time.process_time()
        probe.parse(Output(text))
        assert time.process_time() - began < 1, name


@pytest.mark.parametrize("unit", ["1", "1,", "1,,", "1.", "1 ", " "])
def test_what_people_type_is_soon_searched(unit: str) -> None:
    text = unit * (40_000 // len(unit))
    began = time.process_time()
    assert not total_as_output._stated_rates(text)
    assert not weights_size._stated_sizes(text)
    assert time.process_time() - began < 1
    assert total_as_output._stated_rates(f"{text};1,100.5 tok/s") == [1100.5]
    assert weights_size._stated_sizes(f"{text};weights,100 GB") == [1e11]
