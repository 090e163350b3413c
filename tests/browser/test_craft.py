"""What every page has to have: nothing that axe finds, nothing from elsewhere, little weight, no jump; and
what can be done with the keyboard alone."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import ROOT, Server, sign_in
from webapp.pages.styles import SHEETS

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"  # Deque Systems, MPL-2.0
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALONE = (
    *("", "search?q=gpu", "decisions", "for-me", "calibration", "keys"),
    *("help", "help/operator", "help/reviewer", "help/host-admin", "help/administrator"),
    *("help/reasoning", "help/measuring", "help/probes", "help/benchmarks", "help/rules"),
    *("help/options", "help/words", "help/commands", "help/api"),
    *("account", "people", "webhooks", "stuck"),
)
OF_A_SESSION = (
    *("symptom", "hypothesis", "guest", "path", "host", "diagnosis", "decide", "verify"),
    *("topology", "plan", "summary", "discussion", "log"),
)
LARGEST_BYTES = 60_000  # of styles and scripts, as they are sent
# 320: WCAG 2.2, 1.4.10; 761 and 861: where the rail and the bar above begin to have less room.
WIDTHS_PX = (320, 390, 761, 861, 1024)
SMALL_WORDS = """() => [...document.querySelectorAll("main svg text")]
  .filter(e => e.getClientRects().length)
  .map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a).filter(px => px < 10.9)"""


@pytest.fixture(scope="module", params=["light", "dark"])
def context(request: pytest.FixtureRequest, server: Server, account: str, browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(
        color_scheme=request.param, reduced_motion="reduce", permissions=["clipboard-read", "clipboard-write"]
    )
    page = found.new_page()
    sign_in(page, server)
    expect(page.get_by_role("heading", name="Where does the time per token go?")).to_be_visible()
    page.close()
    yield found
    found.close()


def test_axe_finds_nothing_on_any_page_and_no_page_is_wider_than_its_screen(
    page: Page, server: Server, session: str
) -> None:
    found = {}
    for address in (*(f"{server.url}/{path}" for path in ALONE), *(f"{session}/{p}" for p in OF_A_SESSION)):
        answer = page.goto(address)
        assert answer is not None, address
        assert answer.status == 200, address
        if wrong := [*_violations(page), *_too_wide(page)]:
            found[address] = wrong
    page.goto(f"{session}/diagnosis")
    page.locator("a.ev[href*='/evidence/']:visible").first.click()
    page.wait_for_selector("dialog[open] .marked")
    if wrong := _violations(page):
        found["the evidence above a page"] = wrong
    assert not found


def _violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    told = page.evaluate(
        "rules => axe.run(document, {resultTypes: ['violations'], runOnly: rules})"
        ".then(r => r.violations.map(v => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))",
        RULES,
    )
    return [str(text) for text in told]


def _too_wide(page: Page) -> Iterator[str]:
    """With all that opens open; and what words of its figures cannot be read on a phone."""
    size = page.viewport_size or {"width": 1280, "height": 720}
    page.evaluate("document.querySelectorAll('main details:not(.menu)').forEach(d => d.open = true)")
    for width in WIDTHS_PX:
        page.set_viewport_size({"width": width, "height": size["height"]})
        if over := page.evaluate("document.documentElement.scrollWidth - innerWidth"):
            yield f"{over} px wider than {width} px"
        if width == 390 and (small := page.evaluate(SMALL_WORDS)):
            yield f"words of {small} px in a figure"
    page.set_viewport_size(size)


def test_a_page_is_light_and_asks_nobody_else(page: Page, server: Server, session: str) -> None:
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    page.goto(f"{session}/diagnosis", wait_until="networkidle")
    assert {url for url in asked if not url.startswith(server.url)} == set()
    files = [url for url in asked if re.search(r"\.(css|js)$", url)]
    assert len(files) > 5
    assert sum(map(_sent_bytes, files)) < LARGEST_BYTES


def _sent_bytes(url: str) -> int:
    asked = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked) as answer:
        return len(answer.read())


def test_nothing_jumps_while_a_page_comes(page: Page, session: str) -> None:
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(list => { for (const e of list.getEntries()) "
        "if (!e.hadRecentInput) window.moved += e.value; }).observe({type: 'layout-shift', buffered: true});"
    )
    for step in ("guest", "diagnosis", "decide"):
        page.goto(f"{session}/{step}", wait_until="networkidle")
        assert page.evaluate("window.moved") < 0.02, step


@pytest.mark.parametrize("width", [1440, 2560])
def test_the_map_uses_its_room(page: Page, session: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{session}/topology")
    room, map_ = (page.locator(part).bounding_box() for part in (".drawn", ".drawn > svg"))
    assert room is not None
    assert map_ is not None
    assert 0.85 * room["width"] < map_["width"] <= room["width"]


def test_evidence_opens_above_the_page_and_gives_the_focus_back(page: Page, session: str) -> None:
    page.goto(f"{session}/diagnosis")
    link = page.locator("a.ev[href*='/evidence/']:visible").first
    line = re.search(r"line=(\d+)", link.get_attribute("href") or "")
    assert line is not None
    link.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Raw output")
    expect(dialog.locator(".marked").first).to_have_attribute("data-n", line[1])
    dialog.get_by_role("button", name="Copy the link").click()
    address = page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    expect(link).to_be_focused()
    assert page.url.startswith(f"{session}/diagnosis")
    page.goto(address)
    expect(page.locator(".marked").first).to_have_attribute("data-n", line[1])


def test_a_long_output_is_loaded_as_one_goes(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_label("or files").set_input_files({"name": "long.txt", "mimeType": "text/plain", "buffer": _long()})
    page.get_by_role("button", name="Read it").click(no_wait_after=True)
    page.wait_for_url("**/diagnosis*", timeout=60_000)
    page.locator("a.ev", has_text="long.txt").first.click()
    lines = page.locator("[data-lines]")
    lines.press("End")
    expect(lines.locator("[data-n='40000']")).to_contain_text("line 40000")
    lines.press("Home")
    expect(lines.locator("[data-n='1']")).to_be_visible()
    page.get_by_label("Find in it").fill("NEEDLE")
    page.keyboard.press("Enter")
    expect(lines.locator("[data-n='20001']")).to_be_in_viewport()
    expect(lines.locator("[data-n='20001'] .ink-1")).to_have_text("needle")
    for last in (20_400, 20_600):  # a few hundred at a time
        lines.evaluate("element => { element.scrollTop = element.scrollHeight; }")
        expect(lines.locator(f"[data-n='{last}']")).to_be_attached()
    assert lines.locator("[data-n]").count() < 3000


def _long() -> bytes:
    rows = [f"line {number} of something nobody knows" for number in range(1, 40_001)]
    rows[20_000] = "here is the \x1b[31mneedle\x1b[0m <script>alert(1)</script>"
    return "\n".join(rows).encode()


def test_the_keyboard_alone_goes_everywhere(page: Page, server: Server, session: str) -> None:
    page.goto(f"{session}/guest")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to a page, a session or a word")
    palette.get_by_role("combobox").fill("topology")
    expect(palette.get_by_role("option").first).to_contain_text("Topology map")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{session}/topology")
    page.keyboard.press("g")
    page.keyboard.press("6")
    page.wait_for_url(f"{session}/diagnosis")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator("main .card").first).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url(f"{server.url}/")
    page.keyboard.press("/")
    expect(page.locator("main [role=search] input").first).to_be_focused()


# The first letters come in the task that opens the palette, as they do on a slow machine.
TYPED_AT_ONCE = """() => {
  const pressed = {key: "k", ctrlKey: true, bubbles: true, cancelable: true};
  document.body.dispatchEvent(new KeyboardEvent("keydown", pressed));
  const field = document.querySelector("#palette input");
  field.value = "topology";
  field.dispatchEvent(new InputEvent("input", {bubbles: true}));
  return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def test_what_is_typed_while_the_palette_opens_is_not_lost(page: Page, session: str) -> None:
    page.goto(f"{session}/guest")
    page.evaluate(TYPED_AT_ONCE)
    field = page.get_by_role("combobox", name="Where to")
    expect(field).to_be_focused()
    expect(field).to_have_value("topology")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{session}/topology")


def test_the_form_for_an_objection_comes_where_it_is_asked_for(page: Page, session: str) -> None:
    """Not before: a browser lays out each field of a page when it comes, folded or not."""
    page.goto(f"{session}/diagnosis")
    expect(page.get_by_label("Reason")).to_have_count(0)
    finding = page.locator("#findings .finding").first
    finding.get_by_role("link", name="Agree, dispute or ask").press("Enter")
    expect(finding.get_by_label("Reason")).to_be_focused()
    expect(finding.get_by_role("button", name="Dispute")).to_be_visible()
    assert page.url == f"{session}/diagnosis"


def test_the_tab_and_a_notice_tell_how_a_run_goes(page: Page, session: str) -> None:
    page.goto(f"{session}/host")
    page.locator("details", has_text="Reach the machine").get_by_text("Reach the machine").focus()
    page.get_by_role("button", name="Use this machine").click()
    page.get_by_role("button", name=re.compile(r"Run the \d+ probes")).click()
    expect(page).to_have_title(re.compile(r"^(waits|\d+ of \d+) · "), timeout=20_000)
    assert "icon-running" in str(page.locator("link[rel=icon]").get_attribute("href"))
    held = page.get_by_role("button", name="Pause the display")
    held.click()
    expect(held).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_title(re.compile("^paused · "))
    held.click()
    expect(page.get_by_text(re.compile(r"Run \d+ ended: "))).to_be_visible(timeout=60_000)
    expect(page).to_have_title(re.compile(r"^(succeeded|partly|failed) · "))


def test_no_file_of_the_look_is_unused() -> None:
    """Every page has it, as a sheet or as a script of _base.html, or the one page that needs it names it."""
    everywhere = (ROOT / "templates/_base.html").read_text() + " ".join(SHEETS)
    alone = "".join(page.read_text() for page in ROOT.glob("templates/*/*.html"))
    for file in (*ROOT.glob("static/css/*.css"), *ROOT.glob("static/js/*.js")):
        found = re.search(rf"\b{file.stem}\b", everywhere) or f"{file.parent.name}/{file.name}'" in alone
        assert found, file.name
