"""What became of a record lately, for somebody whose page of it is old."""

from webapp.presenting.times import time_ago
from webapp.records.models import Event
from webapp.review.models import Decision

_SENTENCES = {
    "decision_drafted": "{who} changed it {ago}.",
    "decision_proposed": "{who} proposed it anew {ago}.",
    "decision_withdrawn": "{who} took it back {ago} to change it.",
    "decision_renewed": "{who} renewed its evidence {ago}.",
    "decision_approved": "{who} approved it {ago}, and that was enough.",
    "decision_rejected": "{who} rejected it {ago}.",
    "changes_applied": "{who} said {ago} that it was carried out.",
    "decision_closed": "{who} closed it {ago}.",
}


def became(decision: Decision) -> str:
    """One sentence: the last act on it, by whom and when; else its state."""
    acts = Event.objects.filter(session=decision.session_id, kind__in=_SENTENCES, data__number=decision.number)
    last = acts.order_by("-number").first()
    if last is None or decision.state == "superseded":
        return f"It is {decision.get_state_display()}."
    return _SENTENCES[last.kind].format(who=last.who, ago=time_ago(last.at))
