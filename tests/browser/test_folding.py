"""What is folded is found: by a link, without scripts, on paper; what speaks against the answer never is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Server, sign_in

pytestmark = pytest.mark.browser
# Parts that can be opened and take no room on the page as it is shown.
UNSEEN = """() => [...document.querySelectorAll("main details > :not(summary)")]
  .filter(part => !part.closest("form:not(.on-paper), .no-print"))
  .filter(part => !part.getClientRects().length || !part.checkVisibility())
  .map(part => part.closest("details").textContent.trim().slice(0, 60))"""
OPEN = "document.querySelectorAll('main details[open]').length"


@pytest.fixture(scope="module")
def context(server: Server, account: str, browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme="dark", reduced_motion="reduce")
    page = found.new_page()
    sign_in(page, server)
    page.close()
    yield found
    found.close()


def test_a_link_into_a_folded_part_opens_it(page: Page, session: str) -> None:
    page.goto(f"{session}/diagnosis")
    fabric = page.locator("#pcie-fabric")
    expect(fabric).to_be_hidden()
    page.locator(".rung").get_by_role("link", name="fabric").click()
    expect(fabric).to_be_in_viewport()
    page.locator("#pcie-fabric").locator("xpath=ancestor::details").locator("summary").first.click()
    expect(fabric).to_be_hidden()
    page.locator(".rung").get_by_role("link", name="fabric").click()  # the address stays the same
    expect(fabric).to_be_in_viewport()
    page.goto(f"{session}/decide#option-acs_override")  # folded twice
    expect(page.locator("#option-acs_override").get_by_role("checkbox")).to_be_in_viewport()
    page.goto(f"{session}/diagnosis#hypothesis-compute_bound")
    expect(page.locator("#hypothesis-compute_bound").get_by_text("−").first).to_be_visible()


def test_what_speaks_against_the_answer_is_never_folded(page: Page, session: str) -> None:
    page.goto(f"{session}/diagnosis")
    expect(page.locator("#contradictions")).to_contain_text("do not fit")
    for item in page.locator("#contradictions .claims > li").all():
        expect(item).to_be_visible()
    for bound in ("#bound-1", "#bound-64"):
        expect(page.locator(bound).get_by_text("unless NCCL goes over the network")).to_be_visible()
    for warning in page.locator(".finding", has_text="warning").all():
        expect(warning).to_be_visible()
    expect(page.locator("#pcie-driver")).to_be_visible()


def test_without_scripts_a_folded_part_opens_and_is_linked_to(
    browser: Browser, context: BrowserContext, session: str
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=context.storage_state(), base_url=session)
    page = plain.new_page()
    page.goto(f"{session}/diagnosis#pcie-fabric")
    expect(page.locator("#pcie-fabric")).to_be_in_viewport()
    page.locator("#layouts > summary").click()
    expect(page.locator("#layouts").get_by_text("TP4 + PP2")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("#pivot .timeline")).to_be_visible()
    plain.close()


@pytest.mark.parametrize("step", ["diagnosis", "decide"])
def test_paper_shows_what_is_folded_and_is_light(page: Page, session: str, step: str) -> None:
    page.goto(f"{session}/{step}", wait_until="networkidle")
    assert page.evaluate(UNSEEN), "nothing is folded on the screen"
    opened = page.evaluate(OPEN)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(UNSEEN) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 32, 43)"
    page.emulate_media(media="screen")
    page.pdf()  # printing opens what a style sheet may not, and folds it again
    assert page.evaluate(OPEN) == opened
