"""What happened in a session, in words: the entries of its log."""

from typing import Any

from webapp.presenting.states import state_word
from webapp.records.models import Event

_SENTENCES = {
    "session_opened": "opened this session",
    "step_saved": "saved “{step}”",
    "member_added": "added {name} as {role}",
    "member_role_changed": "made {name} {role}",
    "member_removed": "removed {name}",
    "quorum_set": "set that {quorum} other people approve a change on the host",
    "host_key_accepted": "accepted host key {fingerprint} of {host}",
    "host_key_forgotten": "forgot the host key of {host}",
    "host_key_changed": "was stopped: the host key of {host} changed",
    "target_added": "added the {role} {target}",
    "run_queued": "queued run {number}",
    "run_started": "started run {number}",
    "run_finished": "finished run {number}: {state}",
    "run_cancel_requested": "asked to cancel run {number}",
    "run_handed_back": "handed run {number} to another worker",
    "run_read_late": "looked at the output of run {number} again, when the storage was back",
    "evidence_taken": "read {label}",
    "lines_assigned": "said what lines {first}–{last} of {label} are",
    "lines_unassigned": "took back what lines {first}–{last} of {label} are",
    "evidence_reread": "read the evidence again with newer parsers",
    "evidence_purged": "took the raw bytes of old outputs away ({bytes} bytes)",
    "script_downloaded": "downloaded the {role} script",
    "link_made": "made a link for {person}",
    "link_opened": "opened the link",
    "link_downloaded": "downloaded a script",
    "link_received": "gave something back",
    "link_answered": "answered the questions about the host",
    "answer_set_aside": "set aside {label}, given by {person}",
    "answer_taken_back": "lets {label}, given by {person}, count again",
    "answer_withdrawn": "took back {name}, which they had sent",
    "link_declined": "said that it cannot be done",
    "link_declined_why": "said that it cannot be done: “{why}”",
    "link_revoked": "closed the link of {person}",
    "link_accepted": "accepted what {person} gave",
    "decision_drafted": "wrote decision {number}",
    "decision_proposed": "proposed decision {number}",
    "decision_withdrawn": "took decision {number} back to change it",
    "decision_renewed": "renewed the evidence of decision {number}",
    "decision_approved": "approved decision {number}",
    "decision_rejected": "rejected decision {number}",
    "decision_approved_by_link": "approved decision {number} by the link for {link_of}",
    "decision_rejected_by_link": "rejected decision {number} by the link for {link_of}",
    "decision_closed": "closed decision {number}: {state}",
    "trial_given": "measured step {step}, arm {arm}, of “{option}” by hand",
    "changes_applied": "said that decision {number} was applied",
    "decision_changes_wanted": "wants changes in decision {number}",
    "decision_changes_wanted_by_link": "wants changes in decision {number}, by the link for {link_of}",
    "decision_word_withdrawn": "took their word on decision {number} back",
    "commented": "said: “{words}”",
    "commented_agree": "agrees: “{words}”",
    "commented_dispute": "disputes: “{words}”",
    "commented_ask": "asks: “{words}”",
    "commented_resolve": "resolves: “{words}”",
    "commented_reopen": "reopens: “{words}”",
    "webhook_added": "has {host} told of this session",
    "webhook_removed": "ended that {host} is told",
}


class _Missing(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "…"


def event_text(event: Event) -> str:
    """After the name of who did it: "queued run 3"; the kind's own words where it has no sentence."""
    sentence = _SENTENCES.get(_key(event), event.kind.replace("_", " "))
    values = {**event.data, "state": state_word(event.data["state"])} if "state" in event.data else event.data
    return sentence.format_map(_Missing(values))


def _key(event: Event) -> str:
    """Of its sentence: a comment is what it was meant as, a question where it ends in its mark."""
    if event.kind == "commented":
        words = str(event.data.get("words", ""))
        if not words:
            return ""
        stance = event.data.get("stance") or ("ask" if words.endswith("?") else "")
        return f"commented_{stance}" if stance else "commented"
    if event.kind == "link_declined" and event.data.get("why"):
        return "link_declined_why"
    return f"{event.kind}_by_link" if "link_of" in event.data else event.kind
