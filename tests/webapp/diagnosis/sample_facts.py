"""The founding case's facts at a stage, read from its outputs as they would be pasted."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

from agents.raw_reading import read_raw
from agents.samples import SampleOutput, load
from webapp.diagnosis.case import Case
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation import Situation
from webapp.diagnosis.workload import read_workload


@cache
def facts_at(stage: str) -> Facts:
    outputs = load(f"kpro6@{stage}")
    tables: dict[str, Any] = {}
    for output in outputs:
        if output.is_workload:
            tables |= tomllib.loads(output.text)
    newest = max(output.epoch for output in outputs)
    said = [Sourced(reading, "workload", newest) for reading in read_workload(tables)]
    return Facts.of([*_read(outputs), *said])


@cache
def diagnosed(stage: str) -> Diagnosis:
    return diagnose(facts_at(stage))


def case_at(stage: str) -> Case:
    found = diagnosed(stage)
    return Case(Situation(found.facts), found.ladder, found.bounds, found.verdicts)


def _read(outputs: tuple[SampleOutput, ...]) -> Iterator[Sourced]:
    order = 0
    for output in outputs:
        if output.is_workload:
            continue
        digest = hashlib.sha256(output.text.encode()).hexdigest()[:12]
        for item in read_raw(output.text.encode(), role=None, hint=output.name).items:
            for reading in item.readings:
                order += 1
                yield Sourced(reading, f"{item.reader}@{digest}", output.epoch, order)
