"""Compares two benchmark results: comparability, effect, and what effect could have been seen."""

import json
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.raw_reading import read_raw
from webapp.diagnosis.compare.comparability import Comparability, Standing
from webapp.diagnosis.compare.effects import MARGIN, Comparison, Outcome
from webapp.diagnosis.compare.verification import Pick, verified
from webapp.diagnosis.facts import Facts, Sourced
from webapp.presenting.diagnosis_json import as_text as json_text
from webapp.presenting.diagnosis_json import rounded


class Command(BaseCommand):
    help = "Compare what was measured BEFORE and AFTER, each a file or a folder of runs: serving first."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("before", type=Path, help="results from before the change")
        parser.add_argument("after", type=Path, help="and from after it")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        facts = Facts.of(
            item for epoch, name in enumerate(("before", "after")) for item in _results(options[name], epoch)
        )
        comparison = next(iter(verified(facts, Pick(0), Pick(1), frozenset())), None)
        if comparison is None:
            self._stop(3, "no benchmark of one kind could be read in both BEFORE and AFTER")
        if options["json"]:
            gate = {"verdict": comparison.gate.verdict, "why": comparison.gate.why, "items": comparison.gate.items}
            document = json.loads(msgspec.json.encode(comparison.compared))
            document["comparability"] = json.loads(msgspec.json.encode(gate))
            self.stdout.write(json_text(rounded(document)))
        else:
            self.stdout.write(as_text(comparison.compared, comparison.gate))

    def _stop(self, code: int, message: str) -> NoReturn:
        self.stderr.write(message)
        raise SystemExit(code)


def _results(path: Path, epoch: int) -> list[Sourced]:
    """Every reading of a file, or of the files of a folder in order of their names."""
    if not path.exists():
        raise CommandError(f"{path}: no such file or folder", returncode=2)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    return [
        Sourced(reading, f"{epoch}:{place}:{file.name}", epoch, place)
        for place, file in enumerate(files)
        for item in read_raw(file.read_bytes(), role=None, hint=file.name).items
        for reading in item.readings
    ]


def as_text(comparison: Comparison, gate: Comparability) -> str:
    lines = [f"{gate.verdict.replace('_', ' ')}: {gate.why}"]
    lines.append(f"{comparison.outcome.replace('_', ' ')}: {comparison.why}")
    if comparison.excluded:
        lines.append(comparison.excluded)
    lines.append(f"runs: {comparison.runs[0]} before, {comparison.runs[1]} after")
    if comparison.runs_needed and comparison.outcome == Outcome.CANNOT_TELL:
        lines.append(f"{comparison.runs_needed} runs of each would show a change of {MARGIN * 100:.0f} %")
    for effect in comparison.effects:
        interval = f" ({effect.low:.2f} to {effect.high:.2f})" if effect.low and effect.high else ""
        seen = effect.minimum_detectable
        detectable = f", a change of {seen * 100:.0f} % would show" if seen is not None else ""
        lines.append(
            f"  {effect.path.replace('_', ' '):<16}{effect.size_bytes:>10} bytes "
            f"{effect.before_us:>9.1f} -> {effect.after_us:>9.1f} us  "
            f"{effect.speedup:.2f} x{interval}{detectable}"
        )
    strayed = gate.of(Standing.UNINTENDED)
    lines += [f"differs: {item.title}: {item.before} → {item.after}" for item in strayed]
    if unknown := gate.of(Standing.UNKNOWN):
        lines.append(f"not recorded on both sides: {', '.join(item.title for item in unknown)}")
    lines += [
        f"left out: {row.text.strip()} (its size and time give {row.computed_gb_per_s:.1f} GB/s)"
        for row in comparison.left_out
    ]
    return "\n".join(lines)
