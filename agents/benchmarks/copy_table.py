"""Copies between GPUs that a person measured with another tool and wrote down."""

from agents.benchmark import Benchmark
from agents.facts.bench import COPY
from agents.parsing import copy_table
from agents.probe import Output, Readings, Signature

_SIZE = r"\d\s?(?:[KMG]i?B|bytes|B)\b"
_FIGURE = r"\d\s?(?:us|µs|μs|usec|ms|[KMG]i?B/s)(?![\w/])"


def parse(output: Output) -> Readings:
    result = copy_table.parse(output.stdout)
    lines = tuple(sorted([r.line for r in result.rows] + [r.line for r in result.rejected]))
    if result.rows:
        return (COPY.known(result, lines=lines),)
    if result.rejected:
        why = "no row's bandwidth agrees with its size and time within 5 %"
        return (COPY.unreadable(why, lines=lines),)
    return (COPY.unreadable("no row with a size and a time or bandwidth"),)


benchmark = Benchmark(
    __name__,
    title="Copy measurements written down",
    supplies=(COPY,),
    parse=parse,
    signature=Signature(
        starts=(
            rf"^(?!.*\bNCCL\b).{{0,80}}{_SIZE}.{{0,60}}{_FIGURE}",
            rf"^(?!.*\bNCCL\b).{{0,80}}{_FIGURE}.{{0,40}}{_SIZE}(?!/s)",
            r"^\W*(?:(?:message |transfer )?size|bytes)\b.{0,60}(?:[GM]B/s|\bus\b|µs|bandwidth|latency)",
            r"^\W*(?:size|bytes)=\d+.{0,40}\b(?:time|latency|t|bw)=",
            r"^\s*Test \d+: \[\d+ bytes\]",
        ),
        belongs=(
            rf"{_SIZE}.{{0,60}}{_FIGURE}|{_FIGURE}.{{0,40}}{_SIZE}|^\W*[\d.,]+\W+[\d.,]+(?:\W+[\d.,]+)*\W*$"
            r"|^\W*\d+\s?[KMG]i?B\W|^\|?[\s:|-]+\|?$|^\W*(?:size|bytes)\b"
            r"|(?i:GPU.{0,20}(?:->|→|to|and) ?(?:GPU)? ?\d|same GPU|inside one GPU|CUDA graph|synchroni[sz]e)"
            r"|^\s*Transfer \d+:|^\s*Aggregate "
        ),
        score=0.6,
    ),
)
