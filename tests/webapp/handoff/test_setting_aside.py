"""An answer that is not what was asked is set aside: kept, told, and counting nowhere."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from agents.facts import View
from agents.facts.host import HOST_CMDLINE
from tests.pages import html_of
from tests.webapp.handoff.conftest import Sent
from tests.webapp.handoff.stand_in import on_the_stand_in
from webapp.accounts.models import User
from webapp.handoff.models import Answer
from webapp.handoff.pending_answers import links_to_accept
from webapp.handoff.submissions import still_missing
from webapp.pages.progress import Progress, progress_of
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession, Evidence, SessionMember
from webapp.review.bundle.export import encoded, session_record

pytestmark = pytest.mark.django_db
CMDLINE = "$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.14.8-2-pve root=/dev/sda1 ro iommu=pt\n"


def give(erika: Client, sent: Sent, text: str = CMDLINE) -> Answer:
    erika.post(f"{sent.page}/answer", {"text": text})
    return Answer.objects.filter(link=sent.link).latest("pk")


def put(operator: Client, answer: Answer, **more: str) -> str:
    page = f"/sessions/{answer.link.session_id}/answers/{answer.pk}/set-aside"
    return html_of(operator.post(page, more, follow=True))


def knows(session: DiagnosisSession) -> Progress:
    return progress_of([DiagnosisSession.objects.get(pk=session.pk)])[session.pk]


def test_what_is_set_aside_counts_nowhere_and_can_be_taken_back(sent: Sent, erika: Client, operator: Client) -> None:
    session, answer = sent.link.session, give(erika, sent)
    before = facts_of(session)
    assert before.value(HOST_CMDLINE)
    page = put(operator, answer)
    assert "set aside</span> It is kept, and nothing it says counts" in page
    assert not facts_of(session).readings
    assert "host" not in knows(session).knows
    assert "host.kernel_cmdline" in {p.id for p in still_missing(session, View.HOST)}
    assert Evidence.objects.get(pk=answer.evidence_id).raw == CMDLINE.encode()
    put(operator, answer, counts="1")
    assert facts_of(session).value(HOST_CMDLINE) == before.value(HOST_CMDLINE)
    told = list(session.events.filter(kind__startswith="answer_").values_list("kind", "actor_name"))
    assert told == [("answer_taken_back", "alice"), ("answer_set_aside", "alice")]


def test_the_same_text_given_again_is_a_new_answer(sent: Sent, erika: Client, operator: Client) -> None:
    first = give(erika, sent)
    put(operator, first)
    again = give(erika, sent)
    assert again.evidence_id != first.evidence_id
    assert facts_of(sent.link.session).value(HOST_CMDLINE)


@pytest.mark.service
def test_a_collectors_answer_is_set_aside_with_all_that_it_holds(
    sent: Sent, erika: Client, operator: Client, tmp_path: Path
) -> None:
    erika.get(sent.page)
    path = tmp_path / "script.sh"
    path.write_text(sent.link.scripts.latest("id").text)
    answer = give(erika, sent, on_the_stand_in(tmp_path, path).decode())
    assert len(facts_of(sent.link.session).readings) > 5
    uid = subprocess.run(["id", "-u"], capture_output=True, text=True, check=True).stdout.strip()
    assert answer.ran[0] == ("as root" if uid == "0" else f"not as root (user {uid})")
    put(operator, answer)
    assert not facts_of(sent.link.session).readings


def test_it_stays_set_aside_in_a_bundle(sent: Sent, erika: Client, operator: Client) -> None:
    answer = give(erika, sent)
    put(operator, answer)
    assert "set_aside_at" in encoded(session_record(sent.link.session))


def test_only_answers_of_this_session_and_only_for_operators(
    sent: Sent, erika: Client, client: Client, bob: object
) -> None:
    answer = give(erika, sent)
    page = f"/sessions/{sent.link.session_id}/answers/{answer.pk}/set-aside"
    client.force_login(bob)  # type: ignore[arg-type]
    assert client.post(page).status_code == 404
    assert facts_of(sent.link.session).value(HOST_CMDLINE)


def test_the_step_is_done_and_the_card_moves_on_once_somebody_accepted(
    sent: Sent, erika: Client, operator: Client
) -> None:
    session = sent.link.session
    give(erika, sent)
    assert "host" not in knows(session).done
    card = html_of(operator.get(f"/sessions/{session.pk}/diagnosis"))
    assert "Erika gave something back: look and accept" in card
    assert "Erika gave something back" in html_of(operator.get("/"))
    assert "Erika gave something back" in html_of(operator.get("/for-me"))
    done = operator.post(f"/sessions/{session.pk}/links/{sent.link.pk}/accept", follow=True)
    assert done.redirect_chain[-1][0].endswith(f"/links#link-{sent.link.pk}")
    assert "accepted</span> by alice" in html_of(done)
    assert "host" in knows(session).done
    assert "Erika gave" not in html_of(operator.get(f"/sessions/{session.pk}/guest")).partition('<aside class="feed')[0]


def test_nothing_waits_where_all_that_came_was_set_aside(sent: Sent, erika: Client, operator: Client) -> None:
    page = put(operator, give(erika, sent))
    assert "Accept what came" not in page
    assert knows(sent.link.session).came == ""
    assert not links_to_accept(sent.link.made_by)


def test_a_reviewer_is_not_asked_to_accept(sent: Sent, erika: Client, bob: User) -> None:
    give(erika, sent)
    member = SessionMember.objects.create(session=sent.link.session, user=bob, role="reviewer")
    assert not links_to_accept(bob)
    member.role = "operator"
    member.save()
    assert [link.person for link in links_to_accept(bob)] == ["Erika"]


def take_back(erika: Client, answer: Answer) -> str:
    page = f"/asked/{answer.link_id}/take-back/{answer.pk}"
    return html_of(erika.post(page, follow=True))


def test_who_sent_it_takes_it_back_for_good(sent: Sent, erika: Client, operator: Client) -> None:
    session, answer = sent.link.session, give(erika, sent)
    operator.post(f"/sessions/{session.pk}/links/{sent.link.pk}/accept")
    page = take_back(erika, answer)
    assert "↺ taken back</span> Nothing it says counts" in page
    assert "has what was needed" not in page
    assert not facts_of(session).readings
    assert Evidence.objects.get(pk=answer.evidence_id).raw == CMDLINE.encode()
    links = put(operator, answer, counts="1")
    assert "Erika took it back, and may send it again." in links
    assert "Let it count again" not in links
    assert not facts_of(session).readings
    give(erika, sent)
    assert facts_of(session).value(HOST_CMDLINE)
    event = session.events.get(kind="answer_withdrawn")
    assert (event.who, event.data["name"]) == ("Erika", answer.evidence.name)


def test_what_others_gave_as_well_is_not_taken_back(sent: Sent, erika: Client, operator: Client) -> None:
    session = sent.link.session
    operator.post(f"/sessions/{session.pk}/paste/host", {"text": CMDLINE})
    answer = give(erika, sent)
    assert "Take it back" not in html_of(erika.get(sent.page))
    assert "Others gave the same output" in take_back(erika, answer)
    assert facts_of(session).value(HOST_CMDLINE)


def test_only_by_the_link_that_it_came_by(sent: Sent, erika: Client, send: Callable[..., Sent]) -> None:
    answer, other = give(erika, sent), send()
    browser = Client()
    browser.get(f"/link/{other.token}")
    page = f"/asked/{other.link.pk}/take-back/{answer.pk}"
    assert browser.post(page).status_code == 404
    assert browser.post(f"/asked/{sent.link.pk}/take-back/{answer.pk}").status_code == 410
    assert facts_of(sent.link.session).value(HOST_CMDLINE)


def test_a_no_is_told_with_its_reason_until_something_is_sent(sent: Sent, erika: Client, operator: Client) -> None:
    session, why = sent.link.session, "the host is <b>rented</b>"
    page = html_of(erika.post(f"{sent.page}/decline", {"why": f" {why} "}, follow=True))
    assert "you said no" in page
    shown = "said that it cannot be done: “the host is &lt;b&gt;rented&lt;/b&gt;”"
    plan = html_of(operator.get(f"/sessions/{session.pk}/plan"))
    assert shown in plan
    assert "<b>Erika</b> said" in plan
    links = f"/sessions/{session.pk}/links"
    assert "declined</span> Erika said" in html_of(operator.get(links))
    give(erika, sent)
    assert "declined</span>" not in html_of(operator.get(links))
    assert session.events.get(kind="link_declined").data == {"person": "Erika", "why": why}


def test_what_the_admin_said_of_the_host_is_shown_as_hers(sent: Sent, erika: Client, operator: Client) -> None:
    erika.post(f"{sent.page}/questions", {"host_root": "yes", "why_vm": "shared with others"})
    page = html_of(operator.get(f"/sessions/{sent.link.session_id}/host"))
    assert "Erika answered these by a link." in page
    assert "shared with others" in page
