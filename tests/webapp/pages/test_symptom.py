"""Symptom and goal: what is typed stays, is read as people write it, and says what it was computed from."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.pages.forms.workload import PointForm, Scaled, WorkloadForm
from webapp.records.models import DiagnosisSession

pytestmark = pytest.mark.django_db
POINTS = {"point-TOTAL_FORMS": "4", "point-INITIAL_FORMS": "0"}


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_a_models_figures_come_beside_what_was_typed(browser: Client, session_of_alice: DiagnosisSession) -> None:
    typed = {**POINTS, "title": "Slow", "symptom": "eleven a second", "point-1-concurrency": "32"}
    answer = browser.post(
        f"/sessions/{session_of_alice.pk}/symptom",
        {**typed, "version": "0", "preset": "glm-5", "fill": "1", "parallelism__tp": "8"},
    )
    page = html_of(answer)
    assert "eleven a second" in page
    assert 'name="point-1-concurrency" value="32"' in page
    assert answer.context["form"]["model__layers"].value() == 78
    assert answer.context["form"]["parallelism__tp"].value() == "8"
    session_of_alice.refresh_from_db()
    assert (session_of_alice.symptom, session_of_alice.workload) == ("", {})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("about 485", [485, 485]),
        ("~20-24", [20, 24]),
        ("≈ 2,9 to ~9", [2.9, 9]),
        ("ca. 11", [11, 11]),
        ("20–24", [20, 24]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, read: list[float]) -> None:
    form = PointForm({"concurrency": "1", "output_tokens_per_s": text})
    assert form.is_valid()
    assert form.cleaned_data["output_tokens_per_s"] == read


@pytest.mark.parametrize("text", ["fast", "20-", "24-20", "about", "1 2"])
def test_what_is_no_number_is_told_in_place(text: str) -> None:
    form = PointForm({"concurrency": "1", "output_tokens_per_s": text})
    assert "output_tokens_per_s" in form.errors


def test_a_goal_is_one_number() -> None:
    assert Scaled().clean("about 100") == 100
    form = WorkloadForm({"title": "t", "goal__single_stream_tokens_per_s": "90-100"})
    assert "One number here" in str(form.errors["goal__single_stream_tokens_per_s"])


def save(browser: Client, session: DiagnosisSession, **more: Any) -> str:
    session.refresh_from_db()
    page = f"/sessions/{session.pk}/symptom"
    sent = {**POINTS, "title": "t", "version": str(session.version), **more}
    assert browser.post(page, sent).status_code == 302
    session.refresh_from_db()
    return html_of(browser.get(page))


def test_what_is_read_per_token_comes_from_parameters_and_their_bits(
    browser: Client, session_of_alice: DiagnosisSession
) -> None:
    given = {"model__active_params": "40", "model__bits": "4.5", "model__active_weight_bytes": "9"}
    page = save(browser, session_of_alice, **given)
    assert session_of_alice.workload["model"]["active_weight_bytes"] == [22.5e9, 22.5e9]
    assert "computed from 40·10⁹ active parameters × 4.5 bits" in page
    assert '<option value="4.5" selected>' in page
    typed = save(browser, session_of_alice, **{**given, "model__bits": ""})
    assert session_of_alice.workload["model"]["active_weight_bytes"] == [9e9, 9e9]
    assert 'id="computed"' not in typed


def test_the_model_stays_chosen_and_who_edits_goes_on_by_saving(
    browser: Client, session_of_alice: DiagnosisSession
) -> None:
    filled = browser.get(f"/sessions/{session_of_alice.pk}/symptom?preset=glm-5")
    form = filled.context["form"]
    shape = {name: form[name].value() for name in ("model__layers", "model__hidden_size")}
    page = save(browser, session_of_alice, **shape)
    assert '<option value="glm-5" selected>' in page
    assert "First hypothesis&nbsp;→" not in page, "a link beside the form would lose what is typed"
