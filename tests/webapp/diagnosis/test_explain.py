"""Why is that said: every rule can be opened, with its inputs and its source."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from agents.facts import all_facts
from tests.webapp.diagnosis.sample_facts import diagnosed
from tests.webapp.diagnosis.scenarios import SCENARIOS
from webapp.diagnosis.catalogue import all_hypotheses, all_options, all_rungs
from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.provenance import provenance
from webapp.diagnosis.sections import for_an_engineer

pytestmark = pytest.mark.thorough


def _modules(package: str) -> list[str]:
    path = importlib.import_module(f"webapp.diagnosis.{package}").__path__
    return [f"{package}.{info.name}" for info in pkgutil.iter_modules(path)]


RULES = [
    name
    for package in ("gates", "hypotheses", "options", "contradictions", "finding_rules")
    for name in _modules(package)
]


@pytest.mark.parametrize("name", [*RULES, "bound", "communication", "step_floor", "layouts"])
def test_a_rule_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    found = provenance(name)
    assert found
    assert found.rule == f"webapp.diagnosis.{name}"
    assert len(found.docstring) > 30
    assert len(found.source) > 8
    assert set(found.inputs) <= set(all_facts())
    assert "shared/" not in found.docstring


def test_an_id_alone_finds_its_rule() -> None:
    ids = [*(rung.id for rung in all_rungs()), *(h.id for h in all_hypotheses()), *(o.id for o in all_options())]
    for name in (*ids, *(rule.id for rule in all_rules())):
        assert provenance(name), name
    one, other = (provenance("options.pcie_without_q35"), provenance("contradictions.pcie_without_q35"))
    assert one != other
    for scenario in SCENARIOS[:20]:
        for finding in diagnose(scenario.facts).findings:
            assert provenance(finding.id), finding.id


def test_inputs_are_what_a_rule_reads() -> None:
    driver, hang = provenance("driver"), provenance("hang")
    assert driver
    assert hang
    assert {"guest.p2p_read", "guest.p2p_write", "guest.virt_kind"} <= set(driver.inputs)
    assert {"guest.gpus", "user.observed", "bench.allreduce"} <= set(hang.inputs)
    assert driver.inputs == tuple(sorted(driver.inputs))
    assert "p2p_caps.c" in driver.source


@pytest.mark.parametrize("name", ["", "no_such_rule", "../../etc/passwd", "os", "os.path", "Driver", "a b", "."])
def test_what_is_no_rule_is_none(name: str) -> None:
    assert provenance(name) is None


def test_the_engineers_page_of_the_founding_case() -> None:
    page = {section.title: section for section in for_an_engineer(diagnosed("host"))}
    assert next(iter(page)) == "Answer"
    time = " | ".join(claim.text for claim in page["Where the time goes"].claims)
    assert "at concurrency 1 communication takes 2.1–30.0 ms (estimated)" in time
    assert "at concurrency 64 removing all communication gains at most 1.16 ×" in time
    ladder = page["The ladder of peer-to-peer"]
    assert [claim.text.split()[0] for claim in ladder.claims] == ["granted", "driver"]
    assert len(ladder.notes) == 6
    assert "gpudirect" in " ".join(c.text.lower() for c in page["Recommended"].claims)
    assert "pcie=1" in " ".join(c.text for c in page["Not to be done"].claims)
