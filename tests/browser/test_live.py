"""What is shown live, when its reader types, is signed out, or the server goes away and comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import port_for
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import NAME, PASSWORD, Server, sign_in, started

pytestmark = pytest.mark.browser


@pytest.fixture
def context(server: Server, account: str, browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport={"width": 1440, "height": 900})
    sign_in(found.new_page(), server)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, server: Server) -> Page:
    """At “Ask the host” of a new session."""
    found = context.pages[0]
    found.goto(server.url)
    found.get_by_label("Name of this case").fill("Live")
    found.get_by_role("button", name="Start a session").click()
    found.wait_for_url("**/symptom")
    found.goto(found.url.replace("/symptom", "/host"))
    return found


def test_a_name_that_is_typed_stays_while_the_admin_goes_on(page: Page, browser: Browser) -> None:
    page.get_by_label("Who gets it").fill("Dan")
    page.get_by_role("button", name=re.compile("Make the link")).click()
    link = page.locator("#made-link").inner_text()
    page.get_by_role("link", name="Back, and see how far it gets").click()
    links = page.locator("#links")
    links.get_by_text("Close the link").click()
    confirm = links.get_by_label(re.compile("^Type Dan"))
    confirm.fill("Da")
    admin = browser.new_page()
    admin.goto(link)
    admin.close()
    with page.expect_response(lambda answer: "/links?seen=" in answer.url and answer.status == 200):
        pass
    expect(confirm).to_have_value("Da")
    expect(links.locator(".steps .done")).to_have_count(1)
    confirm.fill("")
    expect(links.locator(".steps .done")).to_have_count(2)
    expect(confirm).to_be_focused()


def test_who_was_signed_out_is_asked_to_sign_in(page: Page, context: BrowserContext) -> None:
    context.clear_cookies()
    page.wait_for_url(re.compile(r"/sign-in\?next=/sessions/.*/host$"))
    expect(page.get_by_role("heading", name="Sign in")).to_have_count(1)


def test_a_server_that_went_away_is_said_until_it_is_back(browser: Browser, tmp_path: Path) -> None:
    url, page = f"http://127.0.0.1:{port_for.select_random()}", browser.new_page()
    with started(url, tmp_path) as log:
        _first_account(page, re.findall(r"http\S+/welcome/\S+", log.read_text())[0])
        page.get_by_role("button", name="Open it").last.click()
        page.wait_for_url("**/symptom")
        page.goto(page.url.replace("/symptom", "/host"))
        expect(page.locator("#links[hx-trigger]")).to_be_visible()
        title = page.title()
    lost = page.get_by_role("status").get_by_text("Connection to Peerpath lost")
    expect(lost).to_be_visible()
    expect(page).to_have_title(f"connection lost · {title}")
    with started(url, tmp_path):
        expect(lost).to_have_count(0)
        expect(page).to_have_title(title)
    page.close()


def _first_account(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Your name here").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
