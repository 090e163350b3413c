"""Not written yet."""

from webapp.diagnosis.case import Case, Finding


def findings(case: Case) -> tuple[Finding, ...]:
    return ()
