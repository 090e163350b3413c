"""Every probe, fact, hypothesis and option keeps its contract."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing

import pytest

from agents.facts import Fact, all_facts
from agents.probe import Probe
from agents.probes import all_probes
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.option import Option

# Words that write, load or restart; a probe only reads.
WRITES = re.compile(
    r"(?<![\w-])(rm|mv|cp|tee|dd|kill|reboot|shutdown|modprobe|setpci|qm\s+(set|start|stop)|"
    r"systemctl\s+(start|stop|restart)|nvidia-smi\s+-(pm|r|pl|c|mig)|apt(-get)?|pip|sysctl\s+-w|"
    r"pvesh\s+(set|create|delete))(?![\w-])|(?<![0-9&^ ])>(?!&|\s*/dev/null)"
)


@pytest.mark.parametrize("probe", all_probes().values(), ids=lambda p: p.id)
def test_a_probe_declares_what_it_is(probe: Probe) -> None:
    module = importlib.import_module(probe.module)
    assert module.__doc__
    assert probe.title
    assert probe.commands
    assert 0 < probe.timeout_s <= 60
    assert all(fact.id in all_facts() for fact in probe.supplies)
    assert len({fact.id for fact in probe.supplies}) == len(probe.supplies) > 0


@pytest.mark.parametrize("probe", all_probes().values(), ids=lambda p: p.id)
def test_a_probe_only_reads(probe: Probe) -> None:
    for command in probe.commands:
        assert not WRITES.search(command.whole), command.whole


@pytest.mark.parametrize("item", [*all_hypotheses(), *all_options()], ids=lambda i: i.id)
def test_a_hypothesis_or_option_declares_what_it_is(item: Hypothesis | Option) -> None:
    assert importlib.import_module(item.module).__doc__
    if isinstance(item, Option):
        texts = (item.title, item.rollback, item.verified_by, item.isolation_cost)
        assert all(texts)
        assert re.fullmatch(r"P[0-5]", item.phase)
    else:
        assert item.claim


@pytest.mark.parametrize("fact", all_facts().values(), ids=lambda f: f.id)
def test_numbers_in_facts_carry_their_unit(fact: Fact[object]) -> None:
    assert fact.title
    for record in _records(fact.type):
        for field in dataclasses.fields(record):
            kinds = set(typing.get_args(_hint(record, field.name))) | {_hint(record, field.name)}
            if float in kinds:
                assert _has_unit(field.name), f"{record.__name__}.{field.name}"


def _hint(record: type, name: str) -> typing.Any:
    return typing.get_type_hints(record)[name]


def _records(kind: typing.Any) -> list[typing.Any]:
    kinds = (kind, *typing.get_args(kind))
    return [k for k in kinds if dataclasses.is_dataclass(k)]


def _has_unit(name: str) -> bool:
    units = ("_us", "_ms", "_s", "_w", "_percent", "_gb_per_s", "_tokens_per_s", "_bytes", "_mib")
    counted = {"tokens_per_event", "tokens_per_joule", "prompt_tokens", "completion_tokens"}
    bare = {"cv", "total_params", "active_params", "values"}
    return name.endswith(units) or name in counted | bare
