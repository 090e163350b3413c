"""The parse boundary: a parser that raises makes its own facts unreadable and stops nothing else."""

from __future__ import annotations

from agents.benchmark import Benchmark
from agents.probe import Output, Probe, Readings


def parse_guarded(reader: Probe | Benchmark, output: Output) -> Readings:
    """What the reader's parser says. It raises nothing, whatever the parser does."""
    try:
        return reader.parse(output)
    except Exception as error:  # parsers raise nothing by contract; this is for the one that does
        reason = f"its parser failed: {type(error).__name__}: {error}"[:300]
        return tuple(fact.unreadable(reason) for fact in reader.supplies)
