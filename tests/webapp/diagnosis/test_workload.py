"""The workload file: what is read, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts.workload import Goal, Model, Observed
from webapp.diagnosis.reference.models import PRESETS
from webapp.diagnosis.workload import read_workload


def values(data: dict[str, object]) -> dict[str, Any]:
    return {reading.fact_id: reading.value for reading in read_workload(data)}


def test_ranges_are_a_number_or_two() -> None:
    found = values(
        {
            "model": {"layers": 78, "weight_bytes": [410e9, 440e9], "active_weight_bytes": 5e9},
            "observed": [{"concurrency": 1, "output_tokens_per_s": 11}],
            "goal": {"total_tokens_per_s": 1000},
            "host": {"host_root": "ask admin", "why_vm": "policy", "may_change": ["vm"]},
            "notes": "slow",
        }
    )
    assert found["user.model"] == Model(layers=78, weight_bytes=(410e9, 440e9), active_weight_bytes=(5e9, 5e9))
    assert found["user.observed"] == (Observed(1, (11, 11)),)
    assert found["user.goal"] == Goal(total_tokens_per_s=1000)
    assert found["user.may_change"] == ("vm",)
    assert found["user.notes"] == "slow"
    assert "user.parallelism" not in found


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"modle": {}}, "modle"),
        ({"model": {"layer": 1}}, "layer"),
        ({"model": {"layers": "78"}}, "model.layers"),
        ({"model": {"layers": 7.5}}, "model.layers"),
        ({"model": {"layers": True}}, "model.layers"),
        ({"model": {"weight_bytes": [2, 1]}}, "low end"),
        ({"model": {"weight_bytes": [1, 2, 3]}}, "low, high"),
        ({"model": {"weight_bytes": float("nan")}}, "weight_bytes"),
        ({"model": []}, "model must be a table"),
        ({"observed": {}}, "list of tables"),
        ({"observed": [{"output_tokens_per_s": 1}]}, "concurrency is missing"),
        ({"observed": [{"concurrency": 0}]}, "concurrency"),
        ({"parallelism": {"dp_attention": 1}}, "dp_attention"),
        ({"host": {"host_root": "maybe"}}, "yes, no, ask admin"),
        ({"host": {"may_change": ["moon"]}}, "bare metal"),
        ({"notes": 1}, "notes"),
    ],
)
def test_a_bad_key_or_value_is_named(data: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_workload(data)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["model", "parallelism", "observed", "goal", "host", "notes", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["layers", "tp", "concurrency", "text", "may_change"]), inner, max_size=2
                )
            ),
            max_leaves=6,
        ),
        max_size=3,
    )
)
def test_nothing_but_a_value_error_is_raised(data: dict[str, object]) -> None:
    try:
        found = read_workload(data)
    except ValueError:
        return
    assert {reading.fact_id.partition(".")[0] for reading in found} <= {"user"}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_workload(name: str) -> None:
    model = values({"model": PRESETS[name].fields})["user.model"]
    assert model.active_params <= model.total_params
    assert PRESETS[name].source
