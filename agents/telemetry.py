"""Telemetry of the GPUs during a measurement of ours, as one more reading."""

from collections.abc import Callable

from agents.facts import Reading
from agents.facts.bench import TELEMETRY, GpuTelemetry
from agents.parsing import payload_lines, telemetry_lines
from agents.probe import Output, Readings

_NOTE = "no telemetry:"


def with_telemetry(parse: Callable[[Output], Readings], schema: str) -> Callable[[Output], Readings]:
    """The readings of a program with this schema, and one of the telemetry among its lines."""

    def both(output: Output) -> Readings:
        return (*parse(output), reading(output, schema))

    return both


def reading(output: Output, schema: str) -> Reading[tuple[GpuTelemetry, ...]]:
    payload = payload_lines.read(output.stdout, schema)
    gpus, lines = telemetry_lines.parse(payload)
    if gpus:
        ends = (*lines[:2], *lines[-1:]) if len(lines) > 3 else lines
        cut = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
        return TELEMETRY.known(gpus, lines=ends, missing=cut)
    why = next((note for note in payload.notes if note.startswith(_NOTE)), "")
    if why:
        return TELEMETRY.unsupported(why)
    return TELEMETRY.not_run("the program looked at no GPU")
