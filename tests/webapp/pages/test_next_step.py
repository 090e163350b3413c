"""What stands on top of every step, and in the list: what is known, what is next, who acts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.facts import View
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.diagnosis.next_test import CANDIDATES, Place
from webapp.pages.next_step import Standing, next_in_list, place_of, standing
from webapp.pages.progress import progress_of
from webapp.pages.templatetags.times import ago
from webapp.records.diagnoses import session_diagnosis
from webapp.records.intake import take_text
from webapp.records.models import DiagnosisSession, Run, StoredReading, Target
from webapp.review.models import Decision
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


def stands(session: DiagnosisSession) -> Standing:
    return standing(session, session_diagnosis(session), progress_of([session])[session.pk])


def test_an_empty_session_asks_for_figures_first(session_of_alice: DiagnosisSession) -> None:
    found = stands(session_of_alice)
    assert found.next.url.endswith("/symptom#observed")
    assert not any(there for _, there in found.rests)


def test_the_sample_names_what_it_rests_on_and_the_cheapest_test(alice: User) -> None:
    found = stands(open_sample("kpro6@host", owner=alice))
    assert dict(found.rests)["the host"] is True
    assert dict(found.rests)["the engine’s profile"] is False
    assert found.next.text == "Profile the engine"
    assert found.next.url.endswith("/path?measure=bench.engine_profile#bench.engine_profile")
    assert found.next.cost == "10 min with preparing, about 60 s of it running, no restart"


@pytest.mark.parametrize(
    ("state", "actor", "place"),
    [
        ("draft", "an operator", "decisions/1"),
        ("proposed", "a reviewer", "decisions/1"),
        ("approved", "who may change the machine", "decisions/1"),
        ("applied", "an operator", "/verify"),
    ],
)
def test_an_open_decision_waits_for_somebody(alice: User, state: str, actor: str, place: str) -> None:
    session = open_sample("kpro6@host", owner=alice)
    Decision.objects.create(
        session=session, number=1, title="Clique", context="", reason="", state=state, proposed_by=alice
    )
    found = stands(session)
    waits = found.also[0] if state == "proposed" else found.next
    assert (waits.actor, waits.url.rstrip("/").endswith(place)) == (actor, True)
    named = {item.text for item in (found.next, *found.also)}
    assert ("Profile the engine" in named) is (state != "applied")


def test_a_proposal_that_waits_keeps_nobody_from_measuring(alice: User) -> None:
    session = open_sample("kpro6@host", owner=alice)
    before = stands(session).next
    session.decisions.create(number=1, title="Clique", state="proposed", proposed_by=alice)
    assert stands(session).next == before


@pytest.mark.parametrize("page", [Place.MEASUREMENTS, Place.GUEST, Place.HOST])
def test_the_next_act_leads_to_a_spot_that_is_there(alice: User, client: Client, page: Place) -> None:
    client.force_login(alice)
    session = open_sample("kpro6@host", owner=alice)
    tests = [candidate.id for candidate in CANDIDATES if candidate.place is page]
    assert tests
    for test in tests:
        address, _, spot = place_of(session, test).partition("#")
        assert f'id="{spot}"' in html_of(client.get(address))


def test_a_run_that_is_under_way_comes_before_all(
    session_of_alice: DiagnosisSession, target: Target, alice: User
) -> None:
    run = Run.objects.create(session=session_of_alice, target=target, number=3, kind="probes", created_by=alice)
    progress = progress_of([session_of_alice])[session_of_alice.pk]
    assert next_in_list(session_of_alice, progress).text == "Run 3 is under way"
    run.state = "failed"
    run.save()
    assert "Run" not in stands(session_of_alice).next.text


def test_many_sessions_cost_as_many_queries_as_one(alice: User, django_assert_num_queries: object) -> None:
    sessions = [open_sample(f"kpro6@{stage}", owner=alice) for stage in ("first", "guest")]
    with django_assert_num_queries(1):  # type: ignore[operator]
        found = progress_of(sessions)
    assert "host" not in found[sessions[0].pk].done
    assert "guest" in found[sessions[1].pk].done


def test_the_palette_leads_only_where_one_may_go(
    client: Client, alice: User, bob: User, session_of_alice: DiagnosisSession
) -> None:
    def offered(user: User) -> set[str]:
        client.force_login(user)
        return {entry["href"] for entry in client.get("/palette").json()}

    assert session_of_alice.get_absolute_url() in offered(alice)
    assert session_of_alice.get_absolute_url() not in offered(bob)
    assert "/stuck" not in offered(bob)


def test_times_are_told_as_people_do_with_the_exact_one() -> None:
    now = timezone.now()
    told = {seconds: str(ago(now - timedelta(seconds=seconds))) for seconds in (5, 200, 8000, 9**7)}
    assert [text.partition(">")[2].partition("<")[0] for text in told.values()][:3] == [
        *("just now", "3 min ago", "2 h ago")
    ]
    assert f"{(now - timedelta(seconds=5)).year}" in told[5]
    assert ago(None) == "never"


DMON = b"""$ nvidia-smi dmon -s pumt -c 3
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa     fb   bar1   ccpm  rxpci  txpci
# Idx      W      C      C      %      %      %      %      %      %     MB     MB     MB   MB/s   MB/s
    0    121     33     30      0      0      0      0      0      0     11      1      0      0      0
    1    119     31     29      0      0      0      0      0      0     11      1      0      0      0
"""


def test_what_the_gpus_did_at_some_moment_measures_no_path(session_of_alice: DiagnosisSession, alice: User) -> None:
    take_text(session_of_alice, DMON, user=alice, view=View.GUEST, hint="guest.gpu_monitor")
    progress = progress_of([session_of_alice])[session_of_alice.pk]
    assert StoredReading.objects.filter(fact_id="bench.telemetry", kind="known").exists()
    assert "path" not in progress.done
    assert "bench" not in progress.knows
