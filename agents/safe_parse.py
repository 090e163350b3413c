"""Safe parse: a parser that raises makes its own facts unreadable and stops nothing else."""

from dataclasses import replace

from agents.benchmark import Benchmark
from agents.facts import ReadingKind
from agents.probe import Output, Probe, Readings


def parse_safely(reader: Probe | Benchmark, output: Output) -> Readings:
    """The parser's readings. It raises nothing, whatever the parser does."""
    try:
        readings = reader.parse(output)
    except Exception as error:  # parsers must not raise; one may
        reason = f"its parser failed: {type(error).__name__}: {error}"[:300]
        return tuple(fact.unreadable(reason) for fact in reader.supplies)
    return _note_missing_rights(reader, output, readings)


def _note_missing_rights(reader: Probe | Benchmark, output: Output, readings: Readings) -> Readings:
    """Names what root would have seen as missing from another user's output, so that root's own output counts
    before it in any order. Only standard error decides: a log that root read may hold the same words."""
    more = reader.root_adds if isinstance(reader, Probe) else ""
    if not more or not Output("", output.stderr).refused:
        return readings
    return tuple(
        replace(reading, missing=(*reading.missing, more))
        if reading.kind is ReadingKind.KNOWN and more not in reading.missing
        else reading
        for reading in readings
    )
