"""The parse boundary: a parser that raises makes its own facts unreadable and stops nothing else."""

from __future__ import annotations

from dataclasses import replace

from agents.benchmark import Benchmark
from agents.facts import ReadingKind
from agents.probe import Output, Probe, Readings


def parse_guarded(reader: Probe | Benchmark, output: Output) -> Readings:
    """What the reader's parser says. It raises nothing, whatever the parser does."""
    try:
        readings = reader.parse(output)
    except Exception as error:  # parsers raise nothing by contract; this is for the one that does
        reason = f"its parser failed: {type(error).__name__}: {error}"[:300]
        return tuple(fact.unreadable(reason) for fact in reader.supplies)
    return _as_far_as_allowed(reader, output, readings)


def _as_far_as_allowed(reader: Probe | Benchmark, output: Output, readings: Readings) -> Readings:
    """What a user without root's rights was told lacks what root would have seen, so that root's own answer
    counts before it, in whatever order they come. By standard error alone: a log that root read may hold the
    same words."""
    more = reader.root_adds if isinstance(reader, Probe) else ""
    if not more or not Output("", output.stderr).refused:
        return readings
    return tuple(
        replace(reading, missing=(*reading.missing, more))
        if reading.kind is ReadingKind.KNOWN and more not in reading.missing
        else reading
        for reading in readings
    )
