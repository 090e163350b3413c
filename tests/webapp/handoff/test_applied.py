"""A phase carried out through a link: its scripts run on the stand-in host, their output given back."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from django.test import Client

from tests.pages import html_of
from tests.standin.pve_host import PveHost, Ran
from webapp.accounts.models import User
from webapp.handoff.models import Answer, Link
from webapp.records.models import DiagnosisSession
from webapp.runs.samples import open_sample

pytestmark = [pytest.mark.django_db, pytest.mark.service]
CLIQUE = "x-nv-gpudirect-clique"


@pytest.fixture
def case(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


@pytest.fixture
def host(tmp_path: Path) -> PveHost:
    machine = PveHost(tmp_path / "host")
    machine.start()
    return machine


class Admin:
    """Who has nothing but the link's page and a shell on the host."""

    def __init__(self, case: DiagnosisSession, host: PveHost) -> None:
        link, token = Link.make(case, made_by=case.owner, person="Erika", purpose="x", hours=24, phases=["P2"])
        self.link, self.host, self.browser = link, host, Client()
        self.page = self.browser.get(f"/link/{token}").headers["Location"]

    def runs(self, act: str) -> Ran:
        """Downloads one script of P2, checks its sum as the page says, types what the page says last."""
        page = html_of(self.browser.get(self.page))
        name = f"peerpath-host-P2-{act}-vm128.sh"
        fetched = re.search(rf"curl -fsSo {name} \S+(/fetch/[0-9a-f]{{64}})\necho \S+?(\w{{64}})", page)
        assert fetched
        text = html_of(self.browser.get(fetched[1]))
        assert hashlib.sha256(text.encode()).hexdigest() == fetched[2]
        *_, words = re.findall(rf"(?:^|<pre[^>]*>)sh {name}(.*)$", page, re.M)
        return self.host.run(text, *words.split())

    def gives_back(self, said: str) -> Answer:
        shown = self.browser.post(f"{self.page}/answer", {"text": said, "phase": "P2"}, follow=True)
        page = html_of(shown)
        assert "the output of P2" in page
        assert "still open" not in page  # of the questions nobody was asked here
        return Answer.objects.filter(link=self.link).latest("at")


def test_applied_verified_and_taken_back_through_the_page(
    case: DiagnosisSession, host: PveHost, operator: Client
) -> None:
    admin, before = Admin(case, host), host.values
    for act, has_clique in (("apply", True), ("verify", True), ("rollback", False)):
        ran = admin.runs(act)
        assert ran.code == 0, ran.said
        assert (CLIQUE in host.values.get("args", "")) == has_clique
        assert host.status == "running"
        given = admin.gives_back(ran.said)
        assert (given.phase, given.evidence.label) == ("P2", "Erika: output of P2")
        assert bytes(given.evidence.body).decode() == ran.said
        shown = html_of(operator.get(f"/sessions/{case.pk}/links"))
        assert f">{given.evidence.name}</a> Erika: output of P2" in shown
    assert host.values == before


def test_a_refusal_comes_back_the_same_way(case: DiagnosisSession, host: PveHost) -> None:
    host.config = host.config.replace("name: llm-one", "lock: backup\nname: llm-one")
    admin, before = Admin(case, host), host.config
    ran = admin.runs("apply")
    assert ran.code != 0
    assert host.config == before
    assert b"lock" in bytes(admin.gives_back(ran.said).evidence.body)
