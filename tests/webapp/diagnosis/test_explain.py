"""Why is that said: every rule can be opened, with its inputs and its source."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests.webapp.diagnosis.sample_facts import diagnosed
from webapp.diagnosis.answer.provenance import provenance
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.catalogue import all_hypotheses, all_options, all_rungs
from webapp.diagnosis.contradictions import all_rules

pytestmark = pytest.mark.thorough


def _modules(package: str) -> list[str]:
    path = importlib.import_module(f"webapp.diagnosis.{package}").__path__
    return [f"{package}.{info.name}" for info in pkgutil.iter_modules(path)]


SHOWN = [name for package in ("gates", "hypotheses", "options", "contradictions") for name in _modules(package)]
WORKED_OUT = [
    *_modules("findings"),
    *(f"prediction.{name}" for name in ("bound", "communication", "step_floor", "layouts")),
]


@pytest.mark.parametrize("name", SHOWN)
def test_a_rule_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    found = provenance(name)
    assert found
    assert found.rule == f"webapp.diagnosis.{name}"
    assert len(" ".join(found.says)) > 30
    assert len(found.source) > 8
    assert not any(text.startswith("Source:") or "shared/" in text for text in found.says)


@pytest.mark.parametrize("name", WORKED_OUT)
def test_what_rules_are_worked_out_from_says_so_too(name: str) -> None:
    text = importlib.import_module(f"webapp.diagnosis.{name}").__doc__ or ""
    assert len(text) > 30
    assert "\n\nSource: " in text
    assert "shared/" not in text


def test_every_rule_of_the_catalogue_has_its_own() -> None:
    ids = [f"gates.{rung.id}" for rung in all_rungs()]
    ids += [f"hypotheses.{hypothesis.id}" for hypothesis in all_hypotheses()]
    ids += [f"options.{option.id}" for option in all_options()]
    ids += [f"contradictions.{rule.id}" for rule in all_rules()]
    assert sorted(ids) == sorted(SHOWN)
    assert provenance("options.pcie_without_q35") != provenance("contradictions.pcie_without_q35")


@pytest.mark.parametrize("name", ["", "driver", "gates.no_such_rule", "../../etc/passwd", "os", "os.path", "a b", "."])
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
