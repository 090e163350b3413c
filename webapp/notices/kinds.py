"""The kinds of event that people and programs can be notified of."""

from dataclasses import dataclass
from datetime import timedelta

LONG_RUN = timedelta(minutes=1)  # nobody waits before the screen for longer


@dataclass(frozen=True, slots=True)
class Kind:
    """events: the kinds of log entries that belong to it. by_default: on unless a person turns it off."""

    id: str
    title: str
    events: frozenset[str]
    by_default: bool = False


KINDS = {
    kind.id: kind
    for kind in (
        Kind("mention", "Somebody names me", frozenset({"commented"}), by_default=True),
        Kind("decision_proposed", "A decision waits for approval", frozenset({"decision_proposed"}), by_default=True),
        Kind(
            "decision_judged",
            "A decision is approved or rejected, or changes are wanted",
            frozenset({"decision_approved", "decision_rejected", "decision_changes_wanted"}),
            by_default=True,
        ),
        Kind("host_asked", "The host’s admin is asked", frozenset({"link_made"})),
        Kind(
            "host_received",
            "The host’s evidence came, or its admin declines",
            frozenset({"link_received", "link_declined"}),
        ),
        Kind("run_finished", "A run of a minute or more ended", frozenset({"run_finished"})),
    )
}
DEFAULTS = sorted(kind.id for kind in KINDS.values() if kind.by_default)
OF_EVENTS = {event: kind.id for kind in KINDS.values() for event in kind.events}
EVENTS = frozenset(OF_EVENTS)
