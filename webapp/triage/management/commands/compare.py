"""Compares two benchmark results: comparability, effect, and what effect could have been seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.facts.bench import ALLREDUCE, COPY, AllReduceResult, CopyResult
from agents.parsing.allreduce_lines import CONTROL
from agents.read import read_raw
from webapp.diagnosis.compare.allreduces import compare_allreduces
from webapp.diagnosis.compare.copies import Comparison, compare_copies
from webapp.triage.diagnosis_json import as_text as json_text
from webapp.triage.diagnosis_json import rounded


class Command(BaseCommand):
    help = "Compare the copies, else the all-reduces, of BEFORE and AFTER: a file, or a folder of runs."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("before", type=Path)
        parser.add_argument("after", type=Path)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        before, after = (_results(options[name]) for name in ("before", "after"))
        found = _compared(before, after)
        if found is None:
            self._stop(3, "no benchmark of one kind could be read in both BEFORE and AFTER")
        if options["json"]:
            self.stdout.write(json_text(rounded(json.loads(msgspec.json.encode(found)))))
        else:
            self.stdout.write(as_text(found))

    def _stop(self, code: int, message: str) -> NoReturn:
        self.stderr.write(message)
        raise SystemExit(code)


def _results(path: Path) -> list[Any]:
    """Every benchmark result of a file, or of the files of a folder in order of their names."""
    if not path.exists():
        raise CommandError(f"{path}: no such file or folder", returncode=2)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    return [
        reading.value
        for file in files
        for item in read_raw(file.read_bytes(), role=None, hint=file.name).items
        for reading in item.readings
        if reading.fact_id in {COPY.id, ALLREDUCE.id}
    ]


def _compared(before: list[Any], after: list[Any]) -> Comparison | None:
    old, new = ([r for r in runs if isinstance(r, CopyResult)] for runs in (before, after))
    if old and new:
        return compare_copies(old[0], new[0], more_before=old[1:], more_after=new[1:])
    was, now = _sums(before), _sums(after)
    if was and now:
        return compare_allreduces(was[0], now[0], more_before=was[1:], more_after=now[1:])
    return None


def _sums(runs: list[Any]) -> list[AllReduceResult]:
    """Without the control arms of runs that have one: the engine would not run like that."""
    found = [r for r in runs if isinstance(r, AllReduceResult)]
    return [r for r in found if r.environment.get("arm") != CONTROL] or found


def as_text(found: Comparison) -> str:
    lines = [f"{found.outcome.replace('_', ' ')}: {found.why}"]
    if found.excluded:
        lines.append(found.excluded)
    lines.append(f"runs: {found.runs[0]} before, {found.runs[1]} after")
    for effect in found.effects:
        interval = f" ({effect.low:.2f} to {effect.high:.2f})" if effect.low and effect.high else ""
        seen = effect.minimum_detectable
        detectable = f", a change of {seen:.0%} would show" if seen is not None else ""
        lines.append(
            f"  {effect.path.replace('_', ' '):<16}{effect.size_bytes:>10} bytes "
            f"{effect.before_us:>9.1f} -> {effect.after_us:>9.1f} us  "
            f"{effect.speedup:.2f} x{interval}{detectable}"
        )
    lines += [f"differs: {text}" for text in found.differs]
    if found.unknown:
        lines.append(f"not recorded on both sides: {', '.join(found.unknown)}")
    lines += [
        f"left out: {row.text.strip()} (its size and time give {row.computed_gb_per_s:.1f} GB/s)"
        for row in found.left_out
    ]
    return "\n".join(lines)
