"""What is disputed, as far as it bears on a record."""

from webapp.review.models import Decision
from webapp.review.threads import Thread, threads_of


def disputes_on(decision: Decision) -> list[Thread]:
    """Those open on the record itself or on an option that it chose."""
    return bearing_on(decision, threads_of(decision.session))


def bearing_on(decision: Decision, threads: list[Thread]) -> list[Thread]:
    meant = {f"decision:{decision.number}", *(f"option:{name}" for name in decision.chosen)}
    return [thread for thread in threads if thread.disputes and thread.first.anchor in meant]
