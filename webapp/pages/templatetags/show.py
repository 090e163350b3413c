"""How values are shown: ranges, evidence links, events, states."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django import forms, template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.benchmark import all_benchmarks
from agents.facts.bench import AllReduceRow, CopyResult
from webapp.diagnosis import wording
from webapp.diagnosis.reference.curves import ring_volume
from webapp.diagnosis.situation.copy_fit import WayFit
from webapp.diagnosis.situation.copy_fit import way_fits as fits_of
from webapp.presenting import figures
from webapp.presenting import measured_figures as drawn
from webapp.presenting.measured_figures import size_text
from webapp.presenting.summaries import reading_words, summary

register = template.Library()

# word, icon and colour of every state a pill can show
STATES = {
    "known": ("✓", "ok"),
    "absent": ("∅", "open"),
    "unsupported": ("–", "unk"),
    "unreadable": ("!", "bad"),
    "not_run": ("◌", "unk"),
    "pass": ("✓", "ok"),
    "fail": ("✕", "bad"),
    "unknown": ("◌", "unk"),
    "not_applicable": ("–", "unk"),
    "supported": ("✓", "ok"),
    "refuted": ("✕", "bad"),
    "open": ("?", "open"),
    "recommended": ("★", "accent"),
    "possible": ("○", "open"),
    "no_effect": ("–", "unk"),
    "unsafe": ("⚠", "bad"),
    "blocked": ("✕", "bad"),
    "done": ("✓", "ok"),
    "queued": ("…", "unk"),
    "claimed": ("…", "accent"),
    "running": ("▸", "accent"),
    "succeeded": ("✓", "ok"),
    "partly": ("◐", "open"),
    "failed": ("✕", "bad"),
    "cancelled": ("■", "unk"),
    "lost": ("?", "bad"),
    "accepted": ("✓", "ok"),
    "draft": ("✎", "unk"),
    "proposed": ("…", "accent"),
    "approved": ("✓", "ok"),
    "rejected": ("✕", "bad"),
    "applied": ("▸", "accent"),
    "verified": ("✓", "ok"),
    "not_verified": ("◌", "unk"),
    "reverted": ("↺", "open"),
    "superseded": ("–", "unk"),
    "changes_wanted": ("✎", "open"),
    "withdrawn": ("↺", "unk"),
    "critical": ("✕", "bad"),
    "warning": ("⚠", "open"),
    "info": ("i", "accent"),
    "improved": ("✓", "ok"),
    "worse": ("✕", "bad"),
    "equivalent": ("=", "ok"),
    "cannot_tell": ("?", "open"),
    "comparable": ("=", "ok"),
    "with_caveats": ("?", "open"),
    "not_comparable": ("≠", "bad"),
    "held": ("✓", "ok"),
    "missed": ("✕", "bad"),
    "undecided": ("?", "open"),
}
EVENTS = {
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


# Kinds whose id says too much: an output was given, and does not tell; or it was refused.
WORDS = {"not_run": "not known"}


class _Missing(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "…"


@register.filter
def event_text(event: Any) -> str:
    text = EVENTS.get(_told_as(event), event.kind.replace("_", " "))
    said = {**event.data, "state": word(event.data["state"])} if "state" in event.data else event.data
    return str(text.format_map(_Missing(said)))


def _told_as(event: Any) -> str:
    """The key of its words: a comment is what it was meant as, a question where it ends in its mark."""
    if event.kind == "commented":
        words = str(event.data.get("words", ""))
        if not words:
            return ""
        meant = event.data.get("stance") or ("ask" if words.endswith("?") else "")
        return f"commented_{meant}" if meant else "commented"
    if event.kind == "link_declined" and event.data.get("why"):
        return "link_declined_why"
    return f"{event.kind}_by_link" if "link_of" in event.data else str(event.kind)


@register.filter
def with_article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def pill(state: Any) -> SafeString:
    """Word, icon and colour: never colour alone."""
    name = str(state)
    icon, colour = STATES.get(name, ("", "unk"))
    return format_html('<span class="pill {}"><span aria-hidden="true">{}</span> {}</span>', colour, icon, word(name))


@register.filter
def word(state: Any) -> str:
    """What a pill says, by itself."""
    return WORDS.get(str(state), str(state).replace("_", " "))


@register.filter
def span(value: Any, unit: str = "") -> str:
    """A range as every sentence has it: "2.1–30.0 ms"; "–" when there is none."""
    if value is None:
        return "–"
    if unit == "×":  # gains have the same digits wherever they stand
        return wording.factor(value)
    return f"{wording.span(value)} {unit}".strip()


@register.filter
def in_words(value: Any) -> str:
    return summary(value)


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str)


@register.filter
def get(mapping: Any, key: Any) -> Any:
    return mapping.get(key)


@register.filter
def fields_of(form: forms.Form, table: str) -> Iterable[forms.BoundField]:
    return [form[name] for name in form.fields if name.startswith(f"{table}__")]


@register.inclusion_tag("components/_plots.html")
def copy_figure(*results: Any) -> dict[str, Any]:
    """One result as it is, or two as before and after."""
    names = [""] if len(results) == 1 else ["before:", "after:"]
    named = list(zip(names, results, strict=False))
    plots = [drawn.copy_plot(named), drawn.bandwidth_plot(named)]
    maps = drawn.copy_maps(results[0]) if len(results) == 1 else []
    return {"plots": [plot for plot in plots if plot], "maps": maps}


@register.filter
def way_fits(result: CopyResult) -> tuple[WayFit, ...]:
    """Latency, bandwidth and knee of each way that was copied."""
    return fits_of(result.rows)


@register.inclusion_tag("components/_plots.html")
def all_reduce_figure(result: Any) -> dict[str, Any]:
    plot = drawn.all_reduce_plot(result)
    return {"plots": [plot] if plot else []}


@register.inclusion_tag("components/_plots.html")
def serving_figure(rows: Any) -> dict[str, Any]:
    return {"plots": drawn.serving_plots(rows)}


@register.inclusion_tag("components/_plots.html")
def matrix_figure(matrices: Any) -> dict[str, Any]:
    return {"maps": [drawn.matrix_map(m) for m in matrices if m.unit != "access"]}


@register.inclusion_tag("session/_timebar.html")
def profile_bar(profile: Any) -> dict[str, Any]:
    return {"bar": figures.profile_bar(profile)}


PART_TITLES = {
    "nccl": "NCCL and other collectives",
    "attention": "attention",
    "moe": "experts",
    "other": "other kernels: dense layers, norms, sampling",
    "gaps": "gaps in which no kernel runs: launches and the host",
}


@register.filter
def profile_parts(profile: Any) -> list[dict[str, Any]]:
    found = []
    for name, title in PART_TITLES.items():
        ms = getattr(profile, f"{name}_ms")
        found.append({"title": title, "ms": ms, "share": 100 * profile.share(ms)})
    return found


@register.filter
def benchmark_title(name: str) -> str:
    """Its id where it is none of today's."""
    found = all_benchmarks().get(name)
    return found.title if found else name


@register.filter
def bar_parts(profiled_ms: Any) -> list[tuple[Any, str, str]]:
    """(range, colour, name) of each part that the profile has, as the bar shows them."""
    return [(profiled_ms[name], kind, label) for name, kind, label in figures.PARTS if name in profiled_ms]


@register.filter
def figure(value: float | None, digits: int) -> str:
    """ "–" where it was not measured."""
    return "–" if value is None else f"{value:,.{digits}f}"


@register.filter
def any_of(rows: Iterable[Any], name: str) -> bool:
    """Whether one of them has this figure."""
    return any(getattr(row, name) is not None for row in rows)


@register.filter
def bus_gb_per_s(row: AllReduceRow) -> float | None:
    """nccl-tests' busbw of an all-reduce (its doc/PERFORMANCE.md), in 10⁹ bytes a second."""
    rate = row.size_bytes / row.time_us / 1e3 if row.time_us else 0.0
    return rate * ring_volume(row.ranks) if row.ranks > 1 else None


@register.filter(name="bytes")
def size_in_words(size_bytes: int) -> str:
    return size_text(size_bytes)


@register.filter
def timing(value: str) -> str:
    return {"device": "on the device", "host_sync": "with synchronise", "unknown": "not said"}[value]


register.filter("reading_words", reading_words)


@register.filter
def spaced(text: Any) -> str:
    return str(text).replace("_", " ")


@register.filter
def state_words(state: Any) -> str:
    icon, _ = STATES.get(str(state), ("", ""))
    return f"{icon} {word(state)}"


@register.filter
def matrix_rows(matrix: Any) -> list[tuple[str, Any]]:
    return list(zip(matrix.gpus, matrix.codes, strict=True))


@register.filter
def percent(share: float, digits: int = 0) -> str:
    """Of 0…1, as all texts have it: "5 %"."""
    return f"{share * 100:.{digits}f} %"
