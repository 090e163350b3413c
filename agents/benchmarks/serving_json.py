"""Result files of serving benchmarks: vLLM, SGLang, GuideLLM, AIPerf, GenAI-Perf."""

from agents.benchmark import Benchmark
from agents.facts.bench import SERVING
from agents.parsing import serving_json
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    rows, lines, left_out = serving_json.parse(output.stdout)
    if not rows:
        if left_out:
            return (SERVING.unreadable("; ".join(left_out)[:300]),)
        if output.tool_missing:
            return (SERVING.unsupported("the benchmark was not found"),)
        return (SERVING.unreadable("no whole result with an output throughput"),)
    missing = list(left_out)
    if any(row.concurrency is None for row in rows):
        missing.append("the limit of concurrent requests")
    return (SERVING.known(rows, lines=lines, missing=tuple(missing)),)


_KEYS = "output_throughput|output_token_throughput|output_tokens_per_second"

benchmark = Benchmark(
    __name__,
    title="Result file of a serving benchmark",
    supplies=(SERVING,),
    parse=parse,
    signature=Signature(
        typed=r"\b(?:guidellm|aiperf|genai-perf)\b",
        starts=(r"^\{\s*$", rf"^\{{.*\"(?:{_KEYS})\":", r"^\{\s*\"(?:metadata|benchmarks|input_config)\":"),
        belongs=r"^\s*[\]\[{}\"\d-]|^\s*(?:true|false|null)",
        score=0.92,
    ),
)
