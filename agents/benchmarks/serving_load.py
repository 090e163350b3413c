"""Our own load on a serving engine: through its OpenAI-compatible endpoint, from the engine's machine."""

from dataclasses import replace

from agents.benchmark import NUMBERS, Benchmark, Choice
from agents.facts.bench import SERVING, TELEMETRY
from agents.parsing import serving_lines
from agents.probe import Output, Readings, Signature
from agents.telemetry import with_telemetry

_TOKENS = r"[1-9][0-9]{0,5}"


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (SERVING.unsupported("python3 was not found on the machine"),)
    report = serving_lines.parse(output.stdout)
    payload = report.payload
    if not report.rows:
        why = payload.error or "; ".join(payload.lost) or payload.stopped
        if why:
            return (SERVING.not_run(why),)
        return (SERVING.unreadable("no rung of the ladder in the output"),)
    end = () if payload.ended else (f"the end: {payload.why_cut(timed_out=output.timed_out)}",)
    reading = SERVING.known(report.rows, lines=report.lines, missing=(*report.failures, *payload.lost, *end))
    return (replace(reading, detail=_circumstances(payload.environment, payload.notes)),)


def _circumstances(environment: dict[str, str], notes: list[str]) -> str:
    settings = [
        f"{title} {environment[name][:200]}"
        for name, title in (
            ("model", "model"),
            ("engine", "engine"),
            ("endpoint", "at"),
            ("input_tokens", "tokens of a prompt about"),
            ("output_tokens", "of an answer"),
            ("seed", "seed"),
        )
        if environment.get(name)
    ]
    remarks = [note for note in notes if not note.startswith("no telemetry:")]
    return "; ".join(filter(None, [", ".join(settings), *remarks]))


benchmark = Benchmark(
    __name__,
    title="Load on the serving engine",
    supplies=(SERVING, TELEMETRY),
    parse=with_telemetry(parse, serving_lines.SCHEMA),
    signature=Signature(
        typed=r"\bpayloads/serving_load\b", starts=(r'^\{"schema": ?"peerpath\.serving_load/1"',), belongs=r"^\{"
    ),
    payload="serving_load",
    argv=("--limit", "900"),
    duration_s=240,
    timeout_s=960,
    engine_runs=True,
    choices=(
        Choice("concurrency", "Requests at once", "1,4,16,64", "one rung each", NUMBERS),
        Choice("input-tokens", "Prompt (tokens)", "512", pattern=_TOKENS),
        Choice("output-tokens", "Answer (tokens)", "128", pattern=_TOKENS),
        Choice(
            "url",
            "Endpoint",
            hint="as that machine reaches it; empty: ports 30000 and 8000 there",
            pattern=r"(?:https?:\/\/)?[\w.:\[\]\/\-]{1,200}",
        ),
        Choice("model", "Model", hint="its name in requests; empty: the first that it lists"),
        Choice("key-file", "Key file", hint="a path there, if the endpoint wants a key"),
        Choice("seed", "Seed", hint="repeats an earlier run’s prompts", pattern=r"[0-9]{1,12}"),
    ),
    about=(
        "Sends prompts to the engine from the machine it runs on, one at a time and then more at once: time"
        " to the first token, time per token, gaps between tokens, output and total tokens a second kept"
        " apart, and tokens per joule where the driver says what the GPUs draw. Tokens are those that the"
        " engine itself counts."
    ),
)
