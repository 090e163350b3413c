""" "Why do you say that?": the rule behind an item, and the source it goes back to."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from webapp.diagnosis.catalogue import all_hypotheses, all_options, all_rungs, listed
from webapp.diagnosis.contradictions import all_rules

_SOURCE = "Source:"


@dataclass(frozen=True, slots=True)
class Provenance:
    """rule: the module that holds it. says: the paragraphs of its docstring but the one of its source.
    source: the publication or program it goes back to."""

    rule: str
    says: tuple[str, ...]
    source: str


@listed
def provenance(rule: str) -> Provenance | None:
    """rule: "gates.driver", "options.iommu_pt" …; None for one that is not there (any more)."""
    module = _modules().get(rule)
    if module is None:
        return None
    paragraphs = inspect.cleandoc(sys.modules[module].__doc__ or "").split("\n\n")
    source = next((text for text in paragraphs if text.startswith(_SOURCE)), "")
    says = tuple(text for text in paragraphs if text is not source)
    return Provenance(module, says, " ".join(source.removeprefix(_SOURCE).split()).rstrip("."))


@listed
def _modules() -> Mapping[str, str]:
    return {
        **{f"gates.{rung.id}": rung.judge.__module__ for rung in all_rungs()},
        **{f"hypotheses.{hypothesis.id}": hypothesis.module for hypothesis in all_hypotheses()},
        **{f"options.{option.id}": option.module for option in all_options()},
        **{f"contradictions.{rule.id}": rule.module for rule in all_rules()},
    }
