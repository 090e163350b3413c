"""Digests, full text, the list that is searched, and what is seen before. Also run on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import Role, User
from webapp.diagnosis.case import Actor, OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.records import session_list
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Digest, Entry, News, Run, RunState
from webapp.records.search import matching, plain
from webapp.records.session_list import PER_PAGE, page
from webapp.records.session_search import Criteria
from webapp.records.sessions import member_add, session_open
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft
from webapp.review.digests import digest_refresh
from webapp.review.similar_sessions import seen_before
from webapp.review.workflow import decision_propose
from webapp.runs import lifecycle
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def sample_of_alice(alice: User) -> DiagnosisSession:
    session = open_sample("kpro6@host", owner=alice)
    digest_refresh(session)
    return session


def propose(session: DiagnosisSession, user: User) -> None:
    result = session_diagnosis(session)
    may = (OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE)
    hosts = {option.id for option in all_options() if option.actor is Actor.HOST_ADMIN}
    chosen = next(n for n, a in result.advice.items() if a.status in may and n in hosts)
    wording = Wording(chosen=(chosen,), reason="Because the ladder stops there, says Wilhelmine.")
    decision_propose(decision_draft(session, user=user, wording=wording, result=result), user=user)
    digest_refresh(session)


def kinds(query: str) -> set[str]:
    return set(matching(Entry.objects.all(), query).values_list("kind", flat=True))


def titles(user: User, **typed: str) -> list[str]:
    return [session.title for session in page(user, Criteria.of(typed)).sessions]


def test_a_digest_holds_the_machine_and_its_answer(sample_of_alice: DiagnosisSession) -> None:
    found = Digest.objects.get(pk=sample_of_alice.pk)
    result = session_diagnosis(sample_of_alice)
    assert found.gpu_count == 8
    assert "PRO 6000" in found.gpu
    assert found.driver.startswith(f"{found.driver_major}.")
    assert found.virt == "kvm"
    assert found.headline == result.headline
    assert found.verdict in found.verdicts
    assert result.verdicts[found.verdict].kind == "supported"
    assert next(g for g in result.ladder if g.gate == found.gate).state == "fail"


def test_an_older_digest_never_replaces_a_newer_one(sample_of_alice: DiagnosisSession) -> None:
    Digest.objects.filter(pk=sample_of_alice.pk).update(upto=10_000, gpu="of later")
    digest_refresh(sample_of_alice)
    assert Digest.objects.get(pk=sample_of_alice.pk).gpu == "of later"


def test_every_event_is_news_until_it_is_followed(session_of_alice: DiagnosisSession) -> None:
    events = set(session_of_alice.events.values_list("pk", flat=True))
    assert set(News.objects.values_list("event", flat=True)) == events != set()


def test_what_happens_moves_a_session_to_the_top(alice: User, bob: User) -> None:
    older, newer = (session_open(owner=alice, title=title) for title in ("older", "newer"))
    assert titles(alice)[:2] == ["newer", "older"]
    member_add(older, user=bob, added_by=alice, role=Role.VIEWER)
    assert titles(alice)[:2] == ["older", "newer"]
    assert newer.pk != older.pk


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("PRO 6000", {"session"}),
        ("pro-6000 KVM", {"session"}),
        ("wilhelm", {"decision"}),
        ("proposed", {"decision"}),
        ("6000 wilhelmine", set()),
        ("", set()),
        ("' & | ! :* \" ( )", set()),
        ("NEAR(a b) OR x*", set()),
        ("ﬀ\u0301\u200b", set()),
    ],
)
def test_every_word_of_a_query_begins_a_word(
    sample_of_alice: DiagnosisSession, alice: User, query: str, found: set[str]
) -> None:
    propose(sample_of_alice, alice)
    assert kinds(query) & {"session", "decision"} == found


def test_versions_findings_and_names_of_evidence_are_found(sample_of_alice: DiagnosisSession) -> None:
    driver = Digest.objects.get(pk=sample_of_alice.pk).driver
    assert "session" in kinds(driver) & kinds(driver[:6])
    finding = Entry.objects.filter(kind="finding").first()
    assert finding is not None
    assert "finding" in kinds(finding.title[:60])
    evidence = Entry.objects.filter(kind="evidence").first()
    assert evidence is not None
    assert "evidence" in kinds(evidence.title)


def test_the_index_follows_changes_and_removals(sample_of_alice: DiagnosisSession) -> None:
    sample_of_alice.title = "Zanzibar rack"
    sample_of_alice.save()
    assert kinds("zanzibar") == set()
    digest_refresh(sample_of_alice)
    assert kinds("zanzibar") == {"session"}
    Entry.objects.filter(kind="session").update(words=plain("Quito"))
    assert (kinds("zanzibar"), kinds("quito")) == (set(), {"session"})
    sample_of_alice.entries.all().delete()
    assert kinds("quito") == set()


def ended(session: DiagnosisSession, user: User, state: RunState, problem: str = "") -> Run:
    target, _ = session.targets.get_or_create(role="guest", agent="ssh", host="gpu-vm", user="op", created_by=user)
    run = lifecycle.queue_benchmark(session, target, user, "bench.copy")
    claim = lifecycle.claim(run.pk)
    assert claim
    assert lifecycle.finish(claim, state, problem)
    return run


def test_a_run_that_ended_is_found_by_what_ran_and_where_and_how_it_ended(
    sample_of_alice: DiagnosisSession, alice: User, bob: User, client: Client
) -> None:
    ended(sample_of_alice, alice, RunState.SUCCEEDED)
    ended(sample_of_alice, alice, RunState.FAILED, "Nothing was measured: GPU 0 is busy.")
    lifecycle.queue_probes(sample_of_alice, sample_of_alice.targets.get(), alice)
    digest_refresh(sample_of_alice)
    entries = matching(Entry.objects.filter(kind="run"), "gpu-vm")
    assert set(entries.values_list("ref", flat=True)) == {"1", "2"}  # not what has not ended
    for query, found in (("copies failed", {"2"}), ("busy", {"2"}), ("bench.copy", {"1", "2"})):
        rows = matching(Entry.objects.filter(kind="run"), query)
        assert set(rows.values_list("ref", flat=True)) == found
    client.force_login(alice)
    with CaptureQueriesContext(connection) as queries:
        page = html_of(client.get("/search?q=busy"))
    assert len(queries) <= 10
    assert f'href="/sessions/{sample_of_alice.pk}/runs/2"' in page
    assert "Run 2: Copies between the GPUs on op@gpu-vm:22" in page
    assert "failed" in page
    assert "Nothing was measured: GPU 0 is busy." in page
    assert client.get(f"/sessions/{sample_of_alice.pk}/runs/2", follow=True).status_code == 200
    client.force_login(bob)
    assert "Run 2" not in html_of(client.get("/search?q=busy"))


def test_raw_output_is_not_searched(sample_of_alice: DiagnosisSession) -> None:
    words = " ".join(Entry.objects.values_list("words", flat=True))
    product = next(
        r.value
        for e in sample_of_alice.evidence.all()
        for r in e.readings.filter(fact_id="guest.product_uuid", kind="known")
    )
    assert plain(str(product)) not in words


def test_only_what_a_person_may_see_is_found(
    sample_of_alice: DiagnosisSession, alice: User, bob: User, carol: User, client: Client
) -> None:
    propose(sample_of_alice, alice)
    said = {}
    for user in (alice, bob, carol):
        client.force_login(user)
        said[user.username] = html_of(client.get("/search", {"q": "wilhelmine"}))
        assert bool(titles(user, q="6000")) is (user != bob)
    address = f"/sessions/{sample_of_alice.pk}/decisions/1"
    assert address in said["alice"]
    assert address in said["carol"]
    assert str(sample_of_alice.pk) not in said["bob"]
    assert "Nothing has all these words" in said["bob"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ({"gpu": "pro 6000"}, True),
        ({"gpu": "H200"}, False),
        ({"driver": "5"}, True),
        ({"driver": "470"}, False),
        ({"verdict": "no-such"}, False),
        ({"verdict": "%"}, False),
        ({"verdict": '", "'}, False),
        ({"gate": "no-such"}, False),
        ({"gpu": "6000", "q": "kvm"}, True),
        ({"q": "···"}, False),
    ],
)
def test_the_list_is_narrowed(
    sample_of_alice: DiagnosisSession, alice: User, typed: dict[str, str], found: bool
) -> None:
    assert bool(titles(alice, **typed)) is found
    digest = Digest.objects.get(pk=sample_of_alice.pk)
    assert titles(alice, gate=digest.gate) == [sample_of_alice.title]


def test_a_session_is_found_by_each_of_its_verdicts(sample_of_alice: DiagnosisSession, alice: User) -> None:
    verdicts = [*Digest.objects.get(pk=sample_of_alice.pk).verdicts, "pcie_link_degraded"]
    Digest.objects.filter(pk=sample_of_alice.pk).update(verdicts=verdicts)
    assert all(titles(alice, verdict=name) == [sample_of_alice.title] for name in verdicts)
    assert titles(alice, verdict=verdicts[-1][:-1]) == []


def test_pages_neither_repeat_nor_skip(alice: User) -> None:
    made = DiagnosisSession.objects.bulk_create(
        DiagnosisSession(owner=alice, title=str(n)) for n in range(PER_PAGE + 7)
    )
    same = timezone.now()
    DiagnosisSession.objects.update(updated_at=same)  # equal times are told apart by the key
    DiagnosisSession.objects.filter(pk=made[0].pk).update(updated_at=same + timedelta(seconds=1))
    alice.is_staff = True
    first = page(alice, Criteria())
    second = page(alice, Criteria(), first.after)
    seen = [session.pk for session in (*first.sessions, *second.sessions)]
    assert seen[0] == made[0].pk
    assert len(seen) == len(set(seen)) == PER_PAGE + 7
    assert second.after == ""
    assert page(alice, Criteria(), "2026-13-01_x").sessions == first.sessions
    assert page(alice, Criteria(), f"9999-12-31T23:59-12:00_{made[0].pk}").sessions == first.sessions
    assert page(alice, Criteria(), f"2026-01-01_{made[0].pk}").sessions == []  # nobody's are older


def test_the_list_is_the_same_however_many_sessions_one_has(
    sample_of_alice: DiagnosisSession, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_open(owner=bob, title="Bob's own")
    session_open(owner=alice, title="of Alice")
    asked: tuple[dict[str, str], ...] = ({}, {"q": "alice"}, {"gpu": "6000"})
    for typed in asked:
        few = page(alice, Criteria.of(typed)).sessions
        with monkeypatch.context() as patch:
            patch.setattr(session_list, "MANY", 1)
            many = page(alice, Criteria.of(typed)).sessions
        assert [(s.pk, s.my_role, s.asked_by) for s in many] == [(s.pk, s.my_role, s.asked_by) for s in few]
        assert few


@pytest.mark.parametrize("address", ["/", "/?q=6000&gpu=pro", "/search?q=6000"])
def test_the_list_and_the_search_take_few_queries(
    sample_of_alice: DiagnosisSession, alice: User, client: Client, address: str
) -> None:
    client.force_login(alice)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address)
    assert sample_of_alice.title in html_of(answer)
    assert len(queries) <= 10, [query["sql"][:100] for query in queries]


def test_seen_before_counts_only_what_a_person_may_see(
    sample_of_alice: DiagnosisSession, alice: User, bob: User, carol: User
) -> None:
    other = open_sample("kpro6@host", owner=bob)
    result = session_diagnosis(other)
    propose(sample_of_alice, alice)
    alone = seen_before(other, bob, result)
    assert alone is not None
    assert (alone.n, alone.alike) == (0, ())
    for user in (carol, bob):
        member_add(sample_of_alice, user=bob, added_by=alice, role=Role.VIEWER)
        found = seen_before(other, user, result)
        assert found is not None
        assert found.n == 1
        (alike,) = found.alike
        assert alike.session == sample_of_alice
        assert len(alike.same) == 3
        assert [d.number for d in alike.decisions] == [1]


def test_nothing_is_alike_without_evidence(session_of_alice: DiagnosisSession, alice: User) -> None:
    assert seen_before(session_of_alice, alice, session_diagnosis(session_of_alice)) is None


def test_the_page_says_what_came_of_it(sample_of_alice: DiagnosisSession, alice: User, client: Client) -> None:
    propose(sample_of_alice, alice)
    other = open_sample("kpro6@host", owner=alice)
    client.force_login(alice)
    assert f"/sessions/{other.pk}/alike" in html_of(client.get(f"/sessions/{other.pk}/diagnosis"))
    said = " ".join(html_of(client.get(f"/sessions/{other.pk}/alike")).split())
    assert "1 other session that you may see has the same GPU" in said
    assert "proposed" in said.partition("Seen before")[2]
    said = html_of(client.get(f"/sessions/{sample_of_alice.pk}/alike"))
    assert "None that you may see" in said  # the other one's digest is not made yet


def test_nobody_is_found_nothing(client: Client) -> None:
    assert client.get("/search").status_code == 302
    assert not list(DiagnosisSession.objects.visible_to(AnonymousUser()))
