"""The engines' own serving benchmarks, pasted: `vllm bench serve`, `sglang.bench_serving`."""

from agents.benchmark import Benchmark
from agents.facts.bench import SERVING
from agents.parsing import serving
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (SERVING.unsupported("the engine's benchmark was not found"),)
    rows, lines = serving.parse(output.stdout)
    if not rows:
        return (SERVING.unreadable("no result block with an output throughput"),)
    missing = () if all(row.concurrency for row in rows) else ("the limit of concurrent requests",)
    return (SERVING.known(rows, lines=lines, missing=missing),)


benchmark = Benchmark(
    __name__,
    title="Serving benchmark of the engine",
    supplies=(SERVING,),
    parse=parse,
    signature=Signature(
        typed=r"\bvllm bench serve\b|benchmark_serving|sglang\.bench_serving|sglang bench_serving",
        starts=(r"^\s*=+ Serving Benchmark Result =+",),
        belongs=r"^\s*[A-Z][^:]{2,60}:\s+\S+\s*$|^-{5,}[A-Z].*-{5,}$|^={20,}$",
    ),
)
