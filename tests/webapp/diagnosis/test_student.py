"""Student's t and Holm's method, against their printed tables."""

from __future__ import annotations

import pytest

from webapp.diagnosis.compare.student import holm, reach, two_sided

# Printed tables of Student's t, two-sided: (degrees of freedom, level, t).
TABLE = [(1, 0.05, 12.706), (2, 0.05, 4.303), (4, 0.05, 2.776), (5, 0.01, 4.032), (8, 0.01, 3.355)]
TABLE += [(9, 0.05, 2.262), (10, 0.001, 4.587), (30, 0.05, 2.042), (120, 0.05, 1.980)]


@pytest.mark.parametrize(("freedom", "level", "t"), TABLE)
def test_students_t_is_that_of_the_tables(freedom: int, level: float, t: float) -> None:
    assert two_sided(t, freedom) == pytest.approx(level, rel=2e-3)
    assert reach(level, freedom) == pytest.approx(t, rel=1e-3)


def test_holm_stops_at_the_first_that_chance_explains() -> None:
    """Holm's own order: 0.01 against 0.05/4, 0.02 against 0.05/3 stops it, and 0.021 is not asked."""
    found = holm([0.021, 0.01, 0.02, 0.9], 0.05)
    assert [answer.differs for answer in found] == [False, True, False, False]
