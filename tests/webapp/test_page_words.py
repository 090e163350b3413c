"""What pages say, as a person reads it: one apostrophe, the protocol's name, and no ids in place of words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.test import Client

from agents.benchmark import all_benchmarks
from agents.facts import all_facts
from agents.probes import all_probes
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.pages.help.pages import PAGES
from webapp.records.models import DiagnosisSession
from webapp.runs.samples import open_sample

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
# As they are typed or printed: shown as they are.
LITERAL = {"pre", "code", "textarea", "script", "style"}
# Beside its title each entry of the help has its id, and an output the name of its file.
IN_PLACE = frozenset({"mono", "sources"})
STEPS = ("symptom", "hypothesis", "guest", "path", "host", "diagnosis", "decide", "verify")
OTHERS = ("plan", "summary", "topology", "ab", "links", "discussion")
STRAIGHT = re.compile(r"[A-Za-z]'[A-Za-z]|s' [a-z]")
IDS = re.compile(r"\b(?:bench|guest|host|vm|user)\.[a-z_]+\b(?!\.txt)|\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


class Prose(HTMLParser):
    """The text of a page without what is literal in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.literal: list[bool] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"br", "wbr", "img", "input", "link", "meta", "hr"}:
            return
        named = set((dict(attrs).get("class") or "").split())
        inside = bool(self.literal and self.literal[-1])
        self.literal.append(inside or tag in LITERAL or bool(named & IN_PLACE))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Nothing in it is read."""

    def handle_endtag(self, tag: str) -> None:
        if self.literal:
            self.literal.pop()
        if tag in {"p", "li", "dd", "td", "h2", "summary", "div"}:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not (self.literal and self.literal[-1]):
            self.parts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.parts)


@pytest.fixture
def founding(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


def test_pages_have_one_apostrophe_and_no_ids(alice: User, founding: DiagnosisSession) -> None:
    browser = Client()
    browser.force_login(alice)
    pages = [f"/sessions/{founding.pk}/{step}" for step in (*STEPS, *OTHERS)]
    pages += ["/", "/keys", "/account", *(page.url for page in PAGES.values())]
    ids = {*all_facts(), *all_probes(), *all_benchmarks(), *(h.id for h in all_hypotheses())}
    for address in pages:
        answer = browser.get(address)
        assert answer.status_code == 200, address
        text = Prose(html_of(answer)).text
        assert (address, STRAIGHT.findall(text)) == (address, [])
        assert (address, set(IDS.findall(text)) & ids) == (address, set())
        assert not re.search(r"(?<![\w./~-])ssh(?![\w:/-])", text), address
