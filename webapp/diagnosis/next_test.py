"""Not written yet."""

from webapp.diagnosis.case import Case, NextTest


def next_tests(case: Case) -> tuple[NextTest, ...]:
    return ()
