"""The whole way with the keyboard alone: every stop shows the focus, and it comes back from what opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import outputs
from tests.browser.conftest import NAME, PASSWORD, Server

pytestmark = pytest.mark.browser
MOST_STOPS = 260
STEPS = ("symptom", "hypothesis", "guest", "path", "host", "diagnosis", "decide", "verify")
# What has the focus: its name, and what keeps one from seeing that it has it.
FOCUS = """() => {
  const element = document.activeElement, box = element.getBoundingClientRect();
  const name = element.labels?.[0]?.innerText ?? element.getAttribute('aria-label') ?? element.innerText;
  const {outlineStyle, outlineWidth} = getComputedStyle(element);
  const there = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && there;
  return [element.localName, name.trim(), seen || element === document.body];
}"""


@pytest.fixture
def page(server: Server, account: str, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )
    found = context.new_page()
    found.goto(f"{server.url}/sign-in")
    yield found
    context.close()


def _to(page: Page, name: str, kind: str = "", key: str = "Tab") -> None:
    """Tab after Tab until what is called so has the focus; each stop on the way has to be seen."""
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        tag, said, seen = page.evaluate(FOCUS)
        assert seen, f"the focus is not seen on {tag} “{said}” of {page.url}"
        if re.search(name, said) and tag.startswith(kind):
            return
    raise AssertionError(f"no stop called “{name}” on {page.url}")


def _keys(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def _press(page: Page, button: str) -> None:
    _to(page, button)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def _write(page: Page, field: str, text: str) -> None:
    _to(page, field)
    page.keyboard.type(text)


def _paste(page: Page, box: str, text: str) -> None:
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    _to(page, box, "textarea")
    page.keyboard.press("Control+v")
    _press(page, "^Read it$")


def _step(page: Page, name: str) -> None:
    _keys(page, "g", str(STEPS.index(name) + 1))
    page.wait_for_url(f"**/{name}")


def _somebody_else(page: Page, browser: Browser, server: Server) -> Page:
    """A reviewer, invited and added to the session that is open."""
    here, name = page.url, "carol"
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Where to")).to_be_focused()
    page.keyboard.type("people")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/people")
    _write(page, "^As$", "r")
    _press(page, "^Make a one-time link$")
    link = page.locator("#made-link").inner_text()
    page.keyboard.press("Alt+ArrowLeft")
    other = browser.new_page()
    other.goto(link)
    _write(other, "^Your name here$", name)
    _write(other, "^Password", PASSWORD)
    other.keyboard.press("Enter")
    other.wait_for_url(f"{server.url}/")
    page.goto(here)
    _write(page, "^Add a person", name)
    _press(page, "^Add$")
    expect(page.get_by_label(f"Role of {name}")).to_be_visible()
    return other


def test_from_signing_in_to_a_verified_decision(page: Page, browser: Browser, server: Server) -> None:
    _write(page, "^Name$", NAME)
    _write(page, "^Password$", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/")

    _to(page, "^Skip to content$")
    _keys(page, "Enter", "Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null"), "past the bar"
    _paste(page, "^Paste anything", outputs.GUEST)
    page.wait_for_url("**/diagnosis*")
    _step(page, "path")
    _paste(page, "^Parts are fine", outputs.COPIES)
    _step(page, "host")
    _write(page, "^Who gets it$", "Dan")
    _press(page, "^Make the link")
    expect(page.get_by_role("heading", name="The link for Dan")).to_be_visible()
    _step(page, "host")
    _paste(page, "^Parts are fine", outputs.HOST)

    _step(page, "diagnosis")
    _to(page, r"paste.*:\d", "a")
    cited = page.evaluate_handle("document.activeElement")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Raw output")
    expect(dialog.get_by_role("region", name="Raw output")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert cited.evaluate("link => link === document.activeElement")

    other = _somebody_else(page, browser, server)
    page.set_viewport_size({"width": 390, "height": 900})
    _step(page, "decide")
    _to(page, "clique", "input")
    page.keyboard.press("Space")
    _write(page, "^Why these, and why now$", "No clique is granted.")
    _press(page, "^Propose it$")
    expect(page.locator("#approvals")).to_contain_text("0 of 1 needed")
    other.goto(page.url)
    _write(other, "^Why, or why not$", "It can be undone.")
    _press(other, "^Approve$")
    expect(other.locator("#approvals")).to_contain_text("1 of 1 needed")
    page.reload()
    _press(page, "^It has been applied")
    expect(page.get_by_text("not measured on both sides")).to_be_visible()
    _paste(page, "^Parts are fine", outputs.COPIES_AFTER)
    _step(page, "verify")
    _write(page, "^What was seen$", "No change that one run each could show.")
    _press(page, "^Close it as no effect$")
    expect(page.locator(".pill", has_text="no effect").first).to_be_visible()
    other.close()
