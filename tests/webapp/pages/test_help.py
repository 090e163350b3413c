"""The help against the code: what there is appears, what is linked is there, and figures are computed."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import pytest
from django.core.management import get_commands
from django.test import Client
from django.urls import get_resolver

from agents.benchmark import all_benchmarks
from agents.facts import View
from agents.probes import all_probes
from tests.corpus import MEASUREMENTS
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.catalogue import all_hypotheses, all_options, all_rungs
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.reference.manuals import MANUALS
from webapp.diagnosis.reference.timing import ALL_REDUCES, COPIES, SIZE_BYTES
from webapp.pages.help.commands import commands
from webapp.pages.help.founding import worked
from webapp.pages.help.pages import EXPLAINED_BY, PAGES, explained_by

pytestmark = pytest.mark.django_db
MASKS = re.compile(r"\*\*\*|/d'|/d;|\^NCCL_")


class Page(HTMLParser):
    """The ids of a page and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if name := given.get("id"):
            self.ids.append(name)
        if tag == "a" and (href := given.get("href")):
            self.links.add(href)


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text_of(client: Client, slug: str) -> str:
    answer = client.get(PAGES[slug].url)
    assert answer.status_code == 200, slug
    return html_of(answer)


def test_everything_there_is_has_its_place(browser: Client) -> None:
    expected = {
        "probes": all_probes().keys(),
        "benchmarks": all_benchmarks().keys(),
        "options": {option.id for option in all_options()},
        "rules": {f"hypothesis-{h.id}" for h in all_hypotheses()}
        | {f"contradiction-{rule.id}" for rule in all_rules()},
        "reasoning": {f"gate-{rung.id}" for rung in all_rungs()},
        "commands": {command.name.replace(" ", "-") for command in commands()},
    }
    for slug, ids in expected.items():
        found = Page(text_of(browser, slug)).ids
        assert ids <= set(found), slug
        assert len(found) == len(set(found)), slug


def test_every_hypothesis_says_what_refutes_it(browser: Client) -> None:
    page = unescape(text_of(browser, "rules"))
    for hypothesis in all_hypotheses():
        entry = page.partition(f'id="hypothesis-{hypothesis.id}"')[2].partition("</section>")[0]
        assert f"<dt>Refuted by</dt><dd>{hypothesis.refuted_by}</dd>" in entry, hypothesis.id
    assert page.count("<dt>Refuted by</dt>") == len(all_hypotheses()), "contradictions are no guesses"


def test_what_is_one_of_a_few_is_listed(browser: Client) -> None:
    reviewer, reasoning = text_of(browser, "reviewer"), text_of(browser, "reasoning")
    assert all(f"<b>{basis.value}</b>" in reviewer for basis in Basis)
    assert all(status.value.replace("_", " ") in reasoning for status in OptionStatus)
    assert "one of: ;" not in reasoning


def test_every_command_stands_there_as_it_runs(browser: Client) -> None:
    page = unescape(text_of(browser, "probes"))
    for probe in all_probes().values():
        for command in probe.commands:
            assert command.sh in page, probe.id


def test_no_link_is_dead(browser: Client) -> None:
    pages = {page.url: Page(text_of(browser, slug)) for slug, page in PAGES.items()}
    pages["/help"] = Page(html_of(browser.get("/help")))

    @cache
    def status(address: str) -> int:
        return browser.get(address).status_code

    for url, page in pages.items():
        for href in page.links - set(MANUALS.values()):
            address, anchor = urldefrag(href)
            address = address or url
            if address in pages:
                assert not anchor or anchor in pages[address].ids, f"{url}: {href}"
            else:
                assert status(address) == 200, f"{url}: {href}"


def test_a_source_leads_to_the_work_it_names_without_saying_from_where(browser: Client) -> None:
    text = "".join(text_of(browser, slug) for slug in ("rules", "options", "words", "reasoning"))
    outside = re.findall(r'<a href="(https:[^"]+)"( rel="noreferrer noopener")?>([^<]+)</a>', text)
    assert {(name, unescape(url)) for url, _, name in outside} == set(MANUALS.items())
    assert all(rel for _, rel, _ in outside)


def test_every_page_is_explained_somewhere(browser: Client) -> None:
    ids = {page.url: set(Page(text_of(browser, slug)).ids) for slug, page in PAGES.items()}
    for view in EXPLAINED_BY:
        address, anchor = urldefrag(explained_by(view))
        assert not anchor or anchor in ids[address], view
    assert set(EXPLAINED_BY) <= set(_views())
    page = html_of(browser.get("/search"))
    assert f'class="how" href="{explained_by("session:search")}"' in page


def _views(patterns: object = None, space: str = "") -> list[str]:
    found = []
    for entry in getattr(patterns or get_resolver(), "url_patterns", []):
        if hasattr(entry, "url_patterns"):
            named = entry.namespace or ""
            found += _views(entry, f"{space}{named}:" if named else space)
        else:
            found.append(f"{space}{entry.name}")
    return found


def test_pages_for_who_holds_a_link_need_no_account(client: Client) -> None:
    for slug, page in PAGES.items():
        expected = 200 if page.open else 302
        assert client.get(page.url).status_code == expected, slug
    assert client.get("/help").status_code == 200
    assert client.get("/help/nothing").status_code == 404
    links = Page(text_of(client, "host-admin")).links | Page(html_of(client.get("/help"))).links
    for href in links:
        if href.startswith("/help/"):
            assert client.get(urldefrag(href)[0]).status_code == 200, href


def test_the_arithmetic_is_the_codes_own(browser: Client) -> None:
    found = worked()
    low, high = found.single.comm_ms or (0, 0)
    assert found.all_reduces * found.copy_us / 1e3 == pytest.approx(low)
    assert found.all_reduces * found.high_us / 1e3 == pytest.approx(high)
    step, gain = found.single.step_ms or (0, 0), found.single.max_gain_remove_comm or (0, 0)
    assert step[0] / (step[0] - high) == pytest.approx(gain[1])
    page = text_of(browser, "reasoning")
    assert re.search(r'id="founding-gain">1\.49 ×<', page)  # case-kpro6: 1.49 ×
    source = Path("templates/help/reasoning.html").read_text()
    assert not re.search(r"\d\.\d", source)  # no figure is typed


def test_a_probe_that_masks_says_what_it_leaves_out() -> None:
    for probe in all_probes().values():
        masks = any(MASKS.search(command.sh) for command in probe.commands)
        assert masks == bool(probe.left_out), probe.id


def test_the_hosts_admin_reads_every_question(client: Client) -> None:
    page = unescape(text_of(client, "host-admin"))
    for probe in all_probes().values():
        if probe.role is View.HOST and not probe.on_demand:
            assert probe.title in page, probe.id
            assert probe.left_out in page, probe.id


def test_the_command_line_is_what_the_parsers_take() -> None:
    listed = {command.name: command for command in commands()}
    ours = {n for n, app in get_commands().items() if str(app).startswith(("webapp.", "worker"))}
    assert {name.replace("_", "-") for name in ours} <= set(listed)
    written = {argument.written for argument in listed["diagnose"].arguments}
    assert {"--role {guest,host}", "--vmid VMID", "--workload FILE.toml", "--json"} <= written
    assert "FILE" in listed["backup"].usage
    assert not {"--settings SETTINGS", "--traceback"} & written


def test_every_command_says_what_each_argument_is() -> None:
    silent = {
        f"{command.name} {argument.written}"
        for command in commands()
        for argument in command.arguments
        if not argument.says
    }
    assert silent == set()


def test_words_are_explained_in_one_place(browser: Client) -> None:
    page = unescape(text_of(browser, "words"))
    for term in GLOSSARY:
        assert term.text in page, term.term


def test_the_copies_are_those_of_two_h200() -> None:
    measured: dict[tuple[str, str], list[float]] = {}
    for line in Path("tests/agents/payloads/two_h200.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("size_bytes") in {0, SIZE_BYTES} and "time_us" in row:
            access = {True: " with", False: " without"}.get(row.get("peer_access"), "")
            measured.setdefault((row["path"] + access, row["timing"]), []).append(row["time_us"])
    paths = ("synchronise", "same", "peer with", "peer without")
    for shown, path in zip(COPIES, paths, strict=True):
        for said, clock in ((shown.device_us, "device"), (shown.host_us, "host_sync")):
            times = measured.get((path, clock), [])
            assert bool(said) == bool(times), (path, clock)
            if said:
                assert said == pytest.approx((min(times), max(times)), rel=0.02), (path, clock)


@pytest.mark.skipif(not MEASUREMENTS.is_dir(), reason="no measurements beside this checkout")
def test_torchs_all_reduces_are_those_that_were_measured() -> None:
    lines = (MEASUREMENTS / "h200x2/allreduce-torch.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("bytes") == SIZE_BYTES]
    shm = [row for row in rows if row["tag"].startswith("p2p_off")]
    [p2p] = [row for row in rows if row["tag"] == "default"]
    for shown, clock in zip(ALL_REDUCES, ("eager_us", "graph_us"), strict=False):
        times = [row[clock] for row in shm]
        assert shown.p2p_us == pytest.approx((p2p[clock],) * 2, rel=0.01)
        assert shown.without_us == pytest.approx((min(times), max(times)), rel=0.01)
