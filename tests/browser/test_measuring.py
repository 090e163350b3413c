"""A measurement from its page: what it takes is read first, it is watched, its points are used; a cancel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.agents.payloads.engine_server import Engine, serving
from tests.browser.conftest import Server, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.service]
Shot = Callable[[Page, str], None]


@pytest.fixture
def page(server: Server, account: str, browser: Browser) -> Iterator[Page]:
    """A new session with this machine, at “Measure the path”."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    complaints: list[str] = []
    sign_in(found, server)
    found.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    found.goto(server.url)
    found.get_by_label("Name of this case").fill("Load it")
    found.get_by_role("button", name="Start a session").click()
    found.locator(".rail").get_by_role("link", name=re.compile("Look at the guest")).click()
    found.get_by_role("button", name="Use this machine").click()
    found.locator(".rail").get_by_role("link", name=re.compile("Measure the path")).click()
    yield found
    context.close()
    assert not complaints


def _chosen(page: Page, engine: Engine) -> Locator:
    offer = page.locator('[id="bench.serving_load"]')
    offer.locator("summary").first.click()
    offer.get_by_label("Endpoint").fill(engine.url)
    offer.get_by_label("Answer (tokens)").fill("40")
    return offer


def test_a_load_fills_in_while_it_runs_and_its_points_are_used(page: Page, shot: Shot) -> None:
    with serving(Engine(step_s=0.01)) as engine:
        offer = _chosen(page, engine)
        expect(offer).to_contain_text("Loads the engine with requests for about 240 s")
        expect(offer).to_contain_text("other requests would be measured along")
        offer.get_by_label("Requests at once").fill("1,4")
        offer.get_by_role("button", name="Measure on this machine").click()
        assert engine.prompts == []  # nothing without a yes
        offer.get_by_role("checkbox").check()
        offer.get_by_role("button", name="Measure on this machine").click()
        run = page.locator("#run-1")
        expect(run.get_by_role("region", name="The last lines it printed")).to_contain_text('"request"', timeout=15_000)
        shot(page, "measure-1-live")
        expect(run).to_contain_text("succeeded", timeout=15_000)
        results = page.locator("#results")
        expect(results.get_by_role("img", name=re.compile("Tokens a second"))).to_be_visible()
        standing = page.get_by_role("region", name="Where this session stands")
        expect(standing).not_to_contain_text("is under way")  # it is told of the end, too
        shot(page, "measure-2-result")
        results.get_by_role("button", name="Use these points as observed").click()
        expect(page.locator(".messages")).to_contain_text("measured at 1, 4 at once")
        expect(page.locator("#id_point-1-concurrency")).to_have_value("4")


def test_a_cancel_ends_the_load(page: Page) -> None:
    with serving(Engine(step_s=0.2)) as engine:
        offer = _chosen(page, engine)
        offer.get_by_role("checkbox").check()
        offer.get_by_role("button", name="Measure on this machine").click()
        run = page.locator("#run-1")
        expect(run).to_contain_text('"schema"', timeout=20_000)
        run.get_by_role("button", name="Cancel").click()
        expect(run).to_contain_text("cancelled", timeout=15_000)
        page.wait_for_timeout(500)
        assert engine.now == 0
