"""Not written yet."""

from webapp.diagnosis.case import Case, Layout


def layouts(case: Case) -> tuple[Layout, ...]:
    return ()
