"""A rate that counts input and output tokens stands where output alone is meant.

The engines' own benchmarks print both rates.

Source: vLLM benchmark_serving; SGLang bench_serving.
"""

import re
from collections.abc import Iterator

from agents.facts.bench import SERVING
from agents.facts.workload import NOTES, OBSERVED, Observed
from webapp.diagnosis.case import Case
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Clash, Rule

# Each number is looked at once, from its beginning: what people type may be one endless number.
_RATE = re.compile(r"(?<!\d)(?<!\d,)(\d++(?:,\d++)*+(?:\.\d++)?)\s*+(?:total\s+)?tok(?:ens?)?\s*(?:/|per )\s*s", re.I)
_EXPLAINED = re.compile(r"\btotal|\binput|of which", re.I)
NEAR = 40
CLOSE = 0.02
APART = 1.1


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    stated_rates = _stated_rates(facts.value(NOTES) or "")
    for row in facts.value(OBSERVED) or ():
        if not row.output_tokens_per_s or not row.total_tokens_per_s:
            continue
        output, total = row.output_tokens_per_s, row.total_tokens_per_s
        where = f"at concurrency {row.concurrency}"
        if total[1] > output[1] * APART and any(_close(rate, total) for rate in stated_rates):
            text = f"{where} {total[1]:g} tok/s counts input and output; output is {_range(output)} tok/s"
            yield text, facts.refs(OBSERVED, NOTES)
        if output[0] > total[1] * (1 + CLOSE):
            yield f"{where} output is above the total of input and output", facts.refs(OBSERVED)
    yield from _against_the_benchmark(facts)


def _stated_rates(text: str) -> list[float]:
    """Rates in the operator's words; not those that are said to be a total."""
    return [
        float(match[1].replace(",", ""))
        for match in _RATE.finditer(text)
        if not _EXPLAINED.search(text[max(0, match.start() - NEAR) : match.end() + NEAR])
    ]


def _against_the_benchmark(facts: Facts) -> Iterator[Clash]:
    by_concurrency: dict[int, Observed] = {row.concurrency: row for row in facts.value(OBSERVED) or ()}
    for row in facts.value(SERVING) or ():
        ours = by_concurrency.get(row.concurrency or 0)
        total, output = row.total_tokens_per_s, row.output_tokens_per_s
        if ours is None or not ours.output_tokens_per_s or not total or not output:
            continue
        if total > output * APART and _close(total, ours.output_tokens_per_s):
            text = (
                f"at concurrency {row.concurrency} the output rate given is the benchmark’s total, "
                f"{total:g} tok/s; its output is {output:g} tok/s"
            )
            yield text, facts.refs(OBSERVED, SERVING)


def _close(rate: float, rates: tuple[float, float]) -> bool:
    return rates[0] * (1 - CLOSE) <= rate <= rates[1] * (1 + CLOSE)


def _range(value: tuple[float, float]) -> str:
    return f"{value[0]:g}" if value[0] == value[1] else f"{value[0]:g}–{value[1]:g}"


rule = Rule(__name__, "A total rate taken for the output rate", check)
