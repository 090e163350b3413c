"""How a bound is drawn and written: never its high end as if it were certain."""

from __future__ import annotations

import pytest

from tests.webapp.diagnosis.sample_facts import diagnosed
from webapp.pages.templatetags.bounds import bases, load, missing
from webapp.pages.templatetags.show import span
from webapp.presenting.figures import time_bar


def test_only_the_low_end_of_a_range_is_drawn_as_certain() -> None:
    bound = diagnosed("guest").bounds[0]
    assert bound.comm_ms
    assert bound.step_ms
    parts = {segment.kind: segment for segment in time_bar(bound)}
    certain, maybe = parts["comm"], parts["comm-maybe"]
    per_ms = 100 / bound.step_ms[0]
    assert certain.width == pytest.approx(bound.comm_ms[0] * per_ms)
    assert certain.width + maybe.width == pytest.approx(bound.comm_ms[1] * per_ms)
    assert maybe.title.startswith("up to ")
    assert sum(segment.width for segment in parts.values()) == pytest.approx(100)


def test_a_gain_has_the_same_digits_everywhere() -> None:
    assert span((1.0, 1.4), "×") == "1.00–1.40 ×"
    assert span((1.0, 1.0), "×") == "1.00 ×"


def test_what_a_figure_is_known_by_and_for() -> None:
    one, many = diagnosed("guest").bounds
    assert dict(bases(one))["the step"] == "said"
    assert dict(bases(one))["weight reads (floor)"] == "literature, weights as said"
    assert [load(one), load(many), load(None)] == ["for a single stream", "at 64 requests", ""]
    assert missing({}, "bench.copy or bench.allreduce: no copy was measured") == "no copy was measured"
