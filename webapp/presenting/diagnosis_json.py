"""A diagnosis as the JSON contract `peerpath.diagnosis/1`: keys sorted, same input same bytes."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from webapp.diagnosis.case import Advice, Bound, Verdict
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.option import Option

SCHEMA = "peerpath.diagnosis/1"
# Figures beyond this many significant digits are noise, and would differ between platforms.
DIGITS = 6


def as_dict(result: Diagnosis, unrecognised: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    options = {option.id: option for option in all_options()}
    document = {
        "schema": SCHEMA,
        "headline": result.headline,
        "summary": result.summary,
        "facts": _facts(result.facts),
        "contradictions": [_result(item) for item in result.contradictions],
        "ladder": [_result(gate) for gate in result.ladder],
        "hypotheses": [_verdict(h, result.verdicts[h.id]) for h in all_hypotheses()],
        "bounds": [_bound(bound) for bound in result.bounds],
        "findings": [_result(finding) for finding in result.findings],
        "next_tests": [_result(test) for test in result.next_tests],
        "layouts": [_result(layout) for layout in result.layouts],
        "options": [_option(options[name], advice) for name, advice in result.advice.items()],
        "corrections": [_result(item) for item in result.corrections],
        "unrecognised": list(unrecognised),
    }
    plain: dict[str, Any] = rounded(document)
    return plain


def as_json(result: Diagnosis, unrecognised: Sequence[dict[str, Any]] = ()) -> str:
    return as_text(as_dict(result, unrecognised))


def as_text(plain: Any) -> str:
    """Keys sorted; with `rounded` figures the same input gives the same bytes everywhere."""
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, indent=1)


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _result(value: Any) -> dict[str, Any]:
    """A rule's result, without the record of what it read."""
    return {key: item for key, item in _plain(value).items() if not key.endswith("reads")}


def _facts(facts: Facts) -> dict[str, Any]:
    return {
        fact_id: {**_sourced(group[0]), "others": [_sourced(item) for item in group[1:]]}
        for fact_id, group in facts.readings.items()
    }


def _sourced(item: Sourced) -> dict[str, Any]:
    reading = item.reading
    return {
        "kind": reading.kind.value,
        "value": _plain(reading.value),
        "detail": reading.detail,
        "complete": reading.complete,
        "missing": list(reading.missing),
        "view": item.view.value,
        "epoch": item.epoch,
        "evidence": [_plain(ref) for ref in item.refs],
    }


def _verdict(hypothesis: Hypothesis, verdict: Verdict) -> dict[str, Any]:
    return {
        "id": hypothesis.id,
        "verdict": verdict.kind.value,
        "for": [_plain(claim) for claim in verdict.for_],
        "against": [_plain(claim) for claim in verdict.against],
        "missing": list(verdict.missing),
        "refuted_by": hypothesis.refuted_by,
        "share_ms": verdict.share_ms,
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return _result(bound)


def _option(option: Option, advice: Advice) -> dict[str, Any]:
    return {
        "id": option.id,
        "title": option.title,
        "phase": option.phase,
        "status": advice.status.value,
        "after": advice.after,
        "why": [_plain(claim) for claim in advice.why],
        "predicted_effect": advice.predicted_effect,
        "actor": option.actor.value,
        "downtime": option.downtime.value,
        "isolation_cost": option.isolation_cost,
        "rollback": option.rollback,
        "verified_by": option.verified_by,
    }


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value
