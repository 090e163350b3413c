"""The founding case's three phases, by three people in two browsers: disputed, approved, stale and approved
again, carried out, measured, closed as “no effect”, and counted in the calibration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from agents.samples import load
from tests.browser.conftest import PASSWORD, Server, sign_in

pytestmark = pytest.mark.browser
Shot = Callable[[Page, str], None]
AGAIN = "root@kpro6:/tmp# cat /proc/cmdline\n"


@pytest.fixture
def desk(server: Server, account: str, browser: Browser) -> Iterator[Page]:
    """The operator's browser."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    sign_in(page, server)
    yield page
    context.close()


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """A second browser, where two people sign in one after the other."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def _invited(desk: Page, server: Server) -> str:
    desk.goto(f"{server.url}/people")
    desk.get_by_label("As", exact=True).select_option("reviewer")
    desk.get_by_role("button", name="Make a one-time link").click()
    return desk.locator("#made-link").inner_text()


def _joined(page: Page, link: str, name: str) -> None:
    page.goto(link)
    page.get_by_label("Your name here").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Where does the time per token go?")).to_be_visible()


def _signed_in_as(page: Page, server: Server, name: str) -> None:
    page.context.clear_cookies()
    page.goto(f"{server.url}/sign-in")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def _paste(page: Page, text: str) -> None:
    page.get_by_label("Parts are fine, and so is a plain terminal log with prompts").fill(text)
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_text("understood").first).to_be_visible()


def _afterwards() -> list[str]:
    """What was read and measured after the plan, as it would be pasted: the two copy tables each alone."""
    outputs = [o for o in load("kpro6") if o.stage == "after" and not o.is_workload]
    tables = [o.text for o in outputs if o.name.startswith("bench.")]
    guest = [o.text for o in outputs if o.name.startswith("guest.")]
    host = [o.text for o in outputs if o.name.startswith("host.")]
    return [*tables, "\n".join(guest), "\n".join(host)]


def test_three_phases_without_an_effect(desk: Page, other: Page, server: Server, shot: Shot) -> None:
    links = [_invited(desk, server), _invited(desk, server)]
    _joined(other, links[0], "reviewer1")
    other.context.clear_cookies()
    _joined(other, links[1], "reviewer2")

    desk.goto(server.url)
    desk.get_by_role("button", name="Open it").click()
    expect(desk.locator(".rail")).to_be_visible()
    session = desk.url.rsplit("/", 1)[0]
    for name in ("reviewer1", "reviewer2"):
        desk.get_by_placeholder("their name").fill(name)
        desk.get_by_role("button", name="Add", exact=True).click()
        expect(desk.get_by_label(f"Role of {name}")).to_be_visible()

    # One of them disputes; it shows until it is answered.
    other.goto(f"{session}/diagnosis#hypothesis-compute_bound")
    finding = other.locator("#hypothesis-compute_bound")
    finding.get_by_text("Agree, dispute or ask").click()
    finding.get_by_label("Reason").fill("330 W of 600 W is normal for decode")
    finding.get_by_role("button", name="Dispute").click()
    desk.goto(f"{session}/diagnosis")
    expect(desk.locator("main")).to_contain_text("330 W of 600 W is normal for decode")
    shot(desk, "three-1-disputed")
    thread = desk.locator("#hypothesis-compute_bound .thread").first
    thread.get_by_text("Answer", exact=True).first.click()
    thread.get_by_label("Answer").fill("Agreed; the profile will tell.")
    thread.get_by_role("button", name="Answer and resolve").click()
    expect(desk.locator("#hypothesis-compute_bound")).to_contain_text("resolved")

    # The three phases as one record; somebody else has to agree.
    desk.goto(f"{session}/decide")
    for option in ("q35_pcie", "amd_iommu_on", "iommu_pt"):
        desk.evaluate("spot => { location.hash = spot }", f"option-{option}")
        desk.locator(f"#option-{option} input").check()
    desk.get_by_label("Title").fill("Phases 1 to 3")
    desk.get_by_label("Why these, and why now").fill("The plan of the first account.")
    desk.get_by_role("button", name="Propose it").click()
    expect(desk.locator("#approvals")).to_contain_text("0 of 1 needed")
    record = desk.url.partition("#")[0]
    other.goto(record)
    other.get_by_label("Why, or why not").fill("The VM can be put back.")
    other.get_by_role("button", name="Approve").click()
    expect(other.locator("#approvals")).to_contain_text("1 of 1 needed")

    # Newer evidence makes it stale: it is renewed, and approved again by the third person.
    desk.goto(f"{session}/host")
    old = next(o for o in load("kpro6@host") if o.name == "host.kernel_cmdline.txt")
    _paste(desk, AGAIN + old.text.split("\n", 1)[1])
    desk.goto(record)
    expect(desk.locator("main")).to_contain_text("stale")
    shot(desk, "three-2-stale")
    desk.get_by_role("button", name=re.compile("Renew it")).click()
    expect(desk.locator("#approvals")).to_contain_text("0 of 1 needed")
    _signed_in_as(other, server, "reviewer1")
    other.goto(record)
    other.get_by_role("button", name="Approve").click()
    expect(other.locator("#approvals")).to_contain_text("1 of 1 needed")

    # Carried out and measured again.
    desk.goto(record)
    desk.get_by_role("button", name=re.compile("It has been applied")).click()
    for text in _afterwards():
        desk.goto(f"{session}/verify")
        _paste(desk, text)
    desk.goto(f"{session}/verify")
    answer = desk.locator("main")
    expect(answer).to_contain_text("Cannot tell: one run of a state cannot tell a change from chance")
    expect(answer).to_contain_text("A change of 2 × is excluded")
    expect(answer).to_contain_text("NS before, NS after")
    expect(desk.locator("main")).to_contain_text("give 42.8 GB/s, not 32.14")
    expect(desk.locator(".gate")).to_contain_text("with caveats")
    expect(desk.locator(".gate", has_text="machine type")).to_contain_text("as intended")
    shot(desk, "three-3-verify")
    desk.get_by_label("What was seen").fill("NS on every pair, as before.")
    desk.get_by_role("button", name="Close it as no effect").click()
    expect(desk.locator(".pill", has_text="no effect").first).to_be_visible()
    expect(desk.locator("main")).to_contain_text("Was it predicted?")

    # The third person sees what Peerpath's own predictions came to.
    other.goto(f"{server.url}/calibration")
    expect(other.locator("main")).to_contain_text("3 of 3 held")
    shot(other, "three-4-calibration")
    other.goto(f"{session}/changed")
    expect(other.locator("main")).to_contain_text("cannot matter")
    assert other.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    shot(other, "three-5-changed")
