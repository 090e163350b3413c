"""Lists of the help, read from the registries: probes, benchmarks, rules, options."""

import inspect
import re
import sys
from dataclasses import dataclass, replace
from functools import cache

from agents.benchmark import Benchmark, all_benchmarks
from agents.collector import PreviewLine, preview
from agents.facts import View, all_facts
from agents.probe import Probe
from agents.probes import all_probes
from webapp.diagnosis.answer.provenance import Provenance, provenance
from webapp.diagnosis.catalogue import all_hypotheses, all_options, all_rungs, listed
from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.option import PHASES, Option

# A path that a command reads: below one of these folders, up to a shell expansion.
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_PLACE = re.compile(r"(?<![\w.])(?:/proc|/sys|/etc|/run|/var|/dev|/boot|/usr/lib)/[\w./*\[\]$@{}-]+")
_SINKS = frozenset({"/dev/null"})


@dataclass(frozen=True, slots=True)
class ListedProbe:
    """says: the paragraphs of its file. commands: in their order. reads: paths in them. tells: titles of its facts."""

    probe: Probe
    says: tuple[str, ...]
    commands: tuple[PreviewLine, ...]
    reads: tuple[str, ...]
    tells: tuple[str, ...]

    @property
    def root(self) -> bool:
        return any(command.root for command in self.commands)


@dataclass(frozen=True, slots=True)
class ListedBenchmark:
    benchmark: Benchmark
    says: tuple[str, ...]
    tells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedRule:
    """sources: works that it cites. refuted_by: the observation that refutes a hypothesis, "" for other rules."""

    id: str
    title: str
    says: tuple[str, ...]
    sources: tuple[str, ...]
    refuted_by: str = ""


@dataclass(frozen=True, slots=True)
class ListedOption:
    option: Option
    says: tuple[str, ...]
    sources: tuple[str, ...]
    changes: tuple[str, ...]


@cache
def probes(view: View) -> tuple[ListedProbe, ...]:
    return tuple(_listed_probe(probe) for probe in all_probes().values() if probe.role is view)


@cache
def benchmarks() -> tuple[ListedBenchmark, ...]:
    """Those that can be run first, then those that only read the output of other tools."""
    entries = [
        ListedBenchmark(b, _module_paragraphs(b.module), tuple(fact.title for fact in b.supplies))
        for b in all_benchmarks().values()
    ]
    return tuple(sorted(entries, key=lambda listed: not listed.benchmark.can_run))


@listed
def gates() -> tuple[ListedRule, ...]:
    return tuple(_listed_rule("gates", rung.id, rung.id) for rung in all_rungs())


@listed
def hypotheses() -> tuple[ListedRule, ...]:
    return tuple(
        replace(_listed_rule("hypotheses", h.id, h.claim.rstrip(".")), refuted_by=h.refuted_by)
        for h in all_hypotheses()
    )


@listed
def contradictions() -> tuple[ListedRule, ...]:
    return tuple(_listed_rule("contradictions", rule.id, rule.title) for rule in all_rules())


@listed
def options() -> tuple[tuple[str, str, tuple[ListedOption, ...]], ...]:
    """(id, description, options) of each phase."""
    listed = [_listed_option(option) for option in all_options()]
    return tuple(
        (phase, says, tuple(item for item in listed if item.option.phase == phase)) for phase, says in PHASES.items()
    )


def _listed_probe(probe: Probe) -> ListedProbe:
    commands = preview((probe,))
    text = " ".join(line.command for line in commands)
    # "$pid" stands for every process; a match that ends in a brace is a shell expression, not a file.
    candidates = (_VARIABLE.sub("*", place).rstrip("./") for place in _PLACE.findall(text))
    places = dict.fromkeys(place for place in candidates if not place.endswith("}"))
    reads = tuple(place for place in places if place not in _SINKS)
    tells = tuple(dict.fromkeys(fact.title for fact in probe.supplies))
    return ListedProbe(probe, _module_paragraphs(probe.module), commands, reads, tells)


def _listed_rule(package: str, name: str, title: str) -> ListedRule:
    origin = _rule_origin(f"{package}.{name}")
    return ListedRule(name, title, origin.says, _source_list(origin))


def _listed_option(option: Option) -> ListedOption:
    origin = _rule_origin(f"options.{option.id}")
    return ListedOption(option, origin.says, _source_list(origin), _fact_titles(option.changes))


def _source_list(origin: Provenance) -> tuple[str, ...]:
    return tuple(filter(None, origin.source.split("; ")))


def _rule_origin(rule: str) -> Provenance:
    origin = provenance(rule)
    if origin is None:
        raise LookupError(f"no rule {rule}")
    return origin


def _fact_titles(fact_ids: tuple[str, ...]) -> tuple[str, ...]:
    facts = all_facts()
    return tuple(dict.fromkeys(facts[name].title if name in facts else name for name in fact_ids))


def _module_paragraphs(module: str) -> tuple[str, ...]:
    return tuple(inspect.cleandoc(sys.modules[module].__doc__ or "").split("\n\n"))
