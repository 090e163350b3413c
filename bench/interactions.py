"""How long a page takes to answer a hand: from the event to the next paint, on a processor slowed 4 times.

`python -m bench.interactions [--times N] [--json]`: a server of its own with the sample case, and Chromium
with CDP's Emulation.setCPUThrottlingRate. Two figures for each act: the longest entry of its events (Event
Timing, of which INP is made; the browser rounds to 8 ms), and the longest task that kept the page from
answering within the second after it (Long Tasks, those above 50 ms; what a fetch brings is swapped in there).
The control says what this machine gives away by itself while others use it.
Also the layout shift that nobody caused.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from worker.management.commands.screenshots import FLAGS, served

SLOWED = 4
GOAL_MS = 100
WATCH = """
window.measured = {events: [], tasks: [], moved: 0};
const watch = (what, told) => new PerformanceObserver(list => list.getEntries().forEach(told)).observe(what);
watch({type: 'event', durationThreshold: 16}, e => e.interactionId && measured.events.push(e.duration));
watch({type: 'longtask'}, e => measured.tasks.push(e.duration));
watch({type: 'layout-shift', buffered: true}, e => { if (!e.hadRecentInput) measured.moved += e.value; });
"""
Act = Callable[[Page], None]


def _key(*keys: str) -> Act:
    def press(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(60)

    return press


def _click(selector: str) -> Act:
    return lambda page: page.locator(selector).first.click()


def _nothing(page: Page) -> None:
    page.wait_for_timeout(0)


def _in_evidence(page: Page) -> None:
    page.locator(EVIDENCE).first.click()
    page.locator("dialog[open] input[name=find]").click()


def _empty(page: Page) -> None:
    page.set_content("<input autofocus>")
    page.locator("input").focus()


CONTROL = "control: an empty page"
EVIDENCE = "main a.ev[href*='/evidence/']:visible"
# name: (page, what comes before, the act, what comes after)
ACTS: dict[str, tuple[str, Act, Act, Act]] = {
    CONTROL: ("about:blank", _empty, _key("a", "b"), _nothing),
    "open the palette": ("diagnosis", _nothing, _key("Control+k"), _key("Escape")),
    "type in the palette": ("diagnosis", _key("Control+k"), _key("t", "o", "p", "o"), _key("Escape")),
    "open the evidence": ("diagnosis", _nothing, _click(EVIDENCE), _key("Escape")),
    "close the evidence": ("diagnosis", _click(EVIDENCE), _key("Escape"), _nothing),
    "open the keyboard list": ("diagnosis", _nothing, _key("?"), _key("Escape")),
    "open a menu": ("diagnosis", _nothing, _click(".me .menu > summary"), _key("Escape")),
    "next section": ("diagnosis", _nothing, _key("j"), _nothing),
    "why do you say that": ("diagnosis", _nothing, _click("details.why > summary"), _nothing),
    "hypotheses ruled out": ("diagnosis", _nothing, _click("main .card > details > summary"), _nothing),
    "light or dark": ("diagnosis", _nothing, _click("[data-theme-switch]"), _nothing),
    "hover a word": ("diagnosis", _nothing, lambda page: page.locator("a.word:visible").first.focus(), _nothing),
    "answer a thread": ("discussion", _nothing, _click(".thread details > summary"), _nothing),
    "why an option": ("decide", _nothing, _click("details.why > summary"), _nothing),
    "choose an option": ("decide", _nothing, _click(".option input[type=checkbox]"), _nothing),
    "filter the sessions": ("/", _click("#find"), _key("g", "p", "u"), _nothing),
    "find in the evidence": ("diagnosis", _in_evidence, _key("N", "V"), _key("Escape")),
    "paste box": ("guest", _click("textarea.paste"), _key("a", "b", "c"), _nothing),
    "every command": ("guest", _nothing, _click("details.card > summary"), _nothing),
    "a what-if slider": (
        "diagnosis",
        lambda page: page.locator("input[type=range]").first.focus(),
        _key("ArrowRight"),
        _nothing,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="how often each is done")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--only", default="", help="acts whose name holds this")
    options = parser.parse_args()
    with slow_page() as (page, base, session):
        chosen = {name: act for name, act in ACTS.items() if options.only in name}
        for name, (where, before, act, after) in chosen.items():
            found = [_once(page, address(base, session, where), before, act, after) for _ in range(options.times)]
            _say(name, found, options.json)
        for where in ("guest", "diagnosis", "decide", "log", "/help/probes"):
            page.goto(address(base, session, where), wait_until="networkidle")
            page.wait_for_timeout(2500)
            print(f"{where}: layout shift {page.evaluate('measured.moved'):.3f}")


def address(base: str, session: str, where: str) -> str:
    if where.startswith("about:"):
        return where
    return f"{base}{where}" if where.startswith("/") else f"{session}/{where}"


def _once(page: Page, url: str, before: Act, act: Act, after: Act) -> tuple[float, float]:
    """The longest event and the longest task, ms; 0 where it was below what the browser tells."""
    page.goto(url, wait_until="networkidle")
    before(page)
    page.wait_for_timeout(500)
    page.evaluate("measured.events = []; measured.tasks = []")
    act(page)
    page.wait_for_timeout(900)
    events, tasks = page.evaluate("[measured.events, measured.tasks]")
    after(page)
    return max(events, default=0.0), max(tasks, default=0.0)


def _say(name: str, found: list[tuple[float, float]], as_json: bool) -> None:
    event, task = (statistics.median(column) for column in zip(*found, strict=True))
    worst = max(row[0] for row in found)
    if as_json:
        print(json.dumps({"act": name, "event_ms": event, "worst_ms": worst, "task_ms": task}))
        return
    mark = "" if max(event, task) <= GOAL_MS else "   above the goal"
    late = f"{task:5.0f}" if task else " < 50"
    shown = f"{event:5.0f}" if event else " < 16"
    print(f"{name:24} event {shown} ms (worst {worst:4.0f}), task {late} ms{mark}")


@contextmanager
def slow_page() -> Iterator[tuple[Page, str, str]]:
    """A signed-in page on a slowed processor, the server's address, and that of a session with a thread."""
    with served() as link, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*FLAGS])
        page = chromium.new_page()
        page.add_init_script(WATCH)
        base = link.partition("/welcome/")[0]
        page.goto(link)
        page.get_by_label("Your name here").fill("operator")
        page.get_by_label("Password").fill("a password for a bench")
        page.get_by_role("button", name="Start").click()
        page.get_by_label("As known after").select_option("host")
        page.get_by_role("button", name="Open it").last.click()
        page.wait_for_url("**/symptom")
        session = page.url.removesuffix("/symptom")
        _thread(page, session)
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        yield page, base, session
        chromium.close()


def _thread(page: Page, session: str) -> None:
    page.goto(f"{session}/discussion")
    page.locator("main summary", has_text="Agree, dispute or ask").click()
    page.locator("main textarea:visible").fill("Is it the clique?")
    page.get_by_role("button", name="Ask or say").first.click()
    page.wait_for_selector(".thread")


if __name__ == "__main__":
    main()
