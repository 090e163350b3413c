"""Compares two benchmark results: comparability, effect, and what effect could have been seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandParser

from agents.facts.bench import COPY, CopyResult
from agents.read import read_raw
from webapp.diagnosis.compare.copies import Comparison, compare_copies


class Command(BaseCommand):
    help = "Compare the copies in BEFORE and AFTER (a file, or a folder with one file a run)."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("before", type=Path)
        parser.add_argument("after", type=Path)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        before, after = (self._runs(options[name]) for name in ("before", "after"))
        found = compare_copies(before[0], after[0], more_before=before[1:], more_after=after[1:])
        if options["json"]:
            plain = json.loads(msgspec.json.encode(found))
            self.stdout.write(json.dumps(plain, sort_keys=True, ensure_ascii=False, indent=1))
        else:
            self.stdout.write(as_text(found))

    def _runs(self, path: Path) -> list[CopyResult]:
        if not path.exists():
            self._stop(2, f"{path}: no such file or folder")
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        runs: list[CopyResult] = [
            reading.value
            for file in files
            for item in read_raw(file.read_bytes(), role=None, hint=file.name).items
            for reading in item.readings
            if reading.fact_id == COPY.id and isinstance(reading.value, CopyResult)
        ]
        if not runs:
            self._stop(3, f"{path} holds no copy benchmark that could be read")
        return runs

    def _stop(self, code: int, message: str) -> None:
        self.stderr.write(message)
        raise SystemExit(code)


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
