"""What every template keeps to: times, and acts that cannot be taken back."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
# Paper has no hover; a record cites the day it was made.
ON_PAPER = {"session/summary.html"}
# One's own password is asked for instead; a run can be started again, and stopping it must be quick.
ASKED_OTHERWISE = {"account/second_factor.html", "session/_run.html"}


def _texts() -> dict[str, str]:
    return {str(p.relative_to(TEMPLATES)): p.read_text() for p in TEMPLATES.rglob("*.html")}


def test_a_time_is_said_as_people_say_it_with_the_exact_one_beneath() -> None:
    raw = re.compile(r"\{\{[^}]*(?:\|date:|\|time:|\|timesince|(?:_at|(?<!tick)(?<!hits)\.at) *\}\})")
    found = {name: raw.findall(text) for name, text in _texts().items() if name not in ON_PAPER}
    assert {name: times for name, times in found.items() if times} == {}


def test_what_cannot_be_taken_back_asks_for_the_name() -> None:
    """Each form with such a button holds the box to type the name into."""
    for name, text in _texts().items():
        if name in ASKED_OTHERWISE:
            continue
        forms = re.findall(r"<form.*?</form>", text, re.DOTALL)
        assert text.count('<button class="btn danger') == sum("btn danger" in f for f in forms), name
        for form in forms:
            if re.search(r"<button class=\"btn (?:small )?danger", form):
                assert "_typed.html" in form, name
