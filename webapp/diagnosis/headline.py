"""Not written yet."""

from webapp.diagnosis.case import Case


def headline(case: Case) -> str:
    return "Not enough evidence."


def summary(case: Case) -> str:
    return ""
