"""Reports that people attach to issues: torch's and vLLM's collect_env, SGLang's check_env.

One report answers many questions: versions, GPUs, driver, processor, topology. Each part goes to the probe that asks
for it. A report loads torch, so the target makes one only on demand.
"""

from dataclasses import replace
from typing import Any

from agents.facts import Fact, Reading, ReadingKind
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest import cpu, driver_version, gpu_list, software, topo_matrix

_PARTS = (software, driver_version, gpu_list, cpu, topo_matrix)


def _all_supplied() -> tuple[Fact[Any], ...]:
    facts: dict[str, Fact[Any]] = {}
    for part in _PARTS:
        facts |= {fact.id: fact for fact in part.probe.supplies}
    return tuple(facts.values())


_FACTS = _all_supplied()
# torch puts a single GPU on the line of its heading.
_ONE_GPU = "GPU models and configuration: GPU "


def parse(output: Output) -> Readings:
    """For each fact the reading of the first part that knows it."""
    output = replace(output, stdout=output.stdout.replace(_ONE_GPU, "GPU "))
    known: dict[str, Reading[Any]] = {}
    for part in _PARTS:
        for reading in part.probe.parse(output):
            if reading.kind is ReadingKind.KNOWN:
                known.setdefault(reading.fact_id, reading)
    return tuple(known.get(fact.id) or _no_reading(fact, output, bool(known)) for fact in _FACTS)


def _no_reading(fact: Fact[Any], output: Output, report: bool) -> Reading[Any]:
    if report:
        return fact.not_run("this report, or this part of one, does not say")
    if output.tool_missing or "No module named 'torch" in output.stderr[-2000:] + output.stdout[-2000:]:
        return fact.unsupported("no Python with torch answered")
    return fact.unreadable("no line of an environment report")


probe = Probe(
    __name__,
    title="Environment report",
    commands=(
        Command("python3 -m torch.utils.collect_env", needs=("python3",)),
        Command("python -m torch.utils.collect_env", needs=("python",)),
    ),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"collect[_-]env|check_env",
        starts=(
            r"^Collecting environment information",
            r"^(?:PyTorch version|vLLM Version)\s*: \S",
            r"^(?:Python|PyTorch|sglang): \d+\.\d+",
        ),
        belongs=(
            r"^[\w\[(][^:|]{1,60}:(?:\s|$)|^\[(?:pip3?|conda)\]|^/usr/|^={8,}$|^\s{2,}\S|^\t|^GPU|^NIC|"
            r"^[A-Z][A-Z0-9_]+=|^Legend:|^Versions of|^[a-z][\w.-]+==\d"
        ),
        score=0.93,
    ),
    timeout_s=60,
    on_demand=True,
)
