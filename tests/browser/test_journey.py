"""One person walks all eight steps in a real browser, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import outputs
from tests.browser.conftest import PASSWORD, Server, sign_in

pytestmark = pytest.mark.browser
Shot = Callable[[Page, str], None]


@pytest.fixture(params=[1440, 390], ids=["wide", "narrow"])
def page(request: pytest.FixtureRequest, server: Server, account: str, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    found = context.new_page()
    complaints: list[str] = []
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    sign_in(found, server)
    yield found
    context.close()
    _none(complaints)


def _none(complaints: list[str]) -> None:
    unexpected = [text for text in complaints if "422" not in text and "409" not in text]
    assert not unexpected


def _no_sideways_scroll(page: Page) -> None:
    page.wait_for_load_state()  # a page that is being left has no document for a moment
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, f"{page.url} is {width} px too wide"


def _paste(page: Page, text: str) -> None:
    page.get_by_label("Parts are fine, and so is a plain terminal log with prompts").fill(text)
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_text("understood").first).to_be_visible()


def _go(page: Page, step: str) -> None:
    page.locator(".rail").get_by_role("link", name=re.compile(step)).click()
    expect(page.locator(".rail [aria-current=step]")).to_contain_text(step)


def test_from_symptom_to_a_verified_decision(page: Page, shot: Shot, request: pytest.FixtureRequest) -> None:
    width = request.node.callspec.id

    def see(name: str) -> None:
        _no_sideways_scroll(page)
        shot(page, f"{name}-{width}")

    see("0-start")
    page.get_by_label("Name of this case").fill("Two GPUs, 11 tok/s")
    page.get_by_role("button", name="Start a session").click()

    page.get_by_label("Start from a common model").select_option("glm-5")
    page.get_by_role("button", name="Fill in its figures").click()
    expect(page.get_by_label("Layers")).to_have_value("78")
    page.get_by_label("What is wrong?").fill("11 tok/s single stream; I expected 100.")
    page.get_by_label("Tensor parallel").fill("2")
    page.get_by_label("Requests at once").first.fill("1")
    page.get_by_label("Output tok/s", exact=True).first.fill("11")
    page.get_by_label("Goal, single stream").fill("100")
    see("1-symptom")
    page.get_by_role("button", name="Save and go on").click()

    page.get_by_label("In your own words").fill("Compute-bound: GPU utilisation is 100 %.")
    page.locator("input[value=compute_bound]").check()
    see("2-hypothesis")
    page.get_by_role("button", name="Save and look at the guest").click()

    page.get_by_role("button", name="Use this machine").click()
    page.get_by_role("button", name=re.compile("Run the .* probes")).click()
    expect(page.locator("#run-1 .pill").first).to_contain_text(re.compile("succeeded|partly"), timeout=90_000)
    expect(page.locator("#run-1")).to_contain_text("guest.kernel_cmdline")
    _paste(page, outputs.GUEST)
    see("3-understood")
    _go(page, "Look at the guest")
    see("3-guest")

    _go(page, "Measure the path")
    _paste(page, outputs.COPIES)
    _go(page, "Measure the path")
    expect(page.locator("figure.plot")).to_be_visible()
    see("4-path")

    _go(page, "Ask the host")
    page.get_by_label("Yes, I have root there").check()
    page.get_by_label("Why is it a VM?").fill("shared host")
    page.get_by_label(re.compile("the VM’s configuration")).check()
    page.get_by_role("button", name="Keep these answers").click()
    expect(page.get_by_label("Why is it a VM?")).to_have_value("shared host")
    _paste(page, outputs.HOST)
    _go(page, "Ask the host")
    see("5-host")

    _go(page, "Diagnosis")
    expect(page.locator(".standing .big")).not_to_be_empty()
    expect(page.locator(".rung.fail", has_text="driver")).to_be_visible()
    driver = page.locator("#pcie-driver")
    expect(driver).to_contain_text("NS on 2 of 2")
    expect(page.locator("#hypothesis-p2p_denied_no_clique")).to_contain_text("supported")
    expect(page.locator("#hypothesis-compute_bound")).not_to_contain_text("supported")
    see("6-diagnosis")
    driver.locator("a.ev").first.click()
    expect(page.locator(".raw .marked", has_text="NS").first).to_be_visible()
    see("6-evidence")
    page.go_back()
    page.get_by_role("link", name="Topology map").first.click()
    expect(page.get_by_role("heading", name="Peer reads")).to_be_visible()
    see("6-topology")

    _go(page, "Decide")
    expect(page.locator("#option-pcie_without_q35 input")).to_be_disabled()
    page.locator("#option-engine_profile input").check()
    page.get_by_label("Why these, and why now").fill("Most of the step is unexplained.")
    see("7-decide")
    page.get_by_role("button", name="Propose it").click()
    expect(page.get_by_role("heading", name="Evidence it rests on")).to_be_visible()
    see("7-decision")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as Markdown").click()
    assert "Most of the step is unexplained" in download.value.path().read_text()
    page.get_by_role("button", name=re.compile("It has been applied")).click()
    expect(page.get_by_text("not measured on both sides")).to_be_visible()

    _paste(page, outputs.COPIES_AFTER)
    _go(page, "Verify")
    expect(page.locator("main")).to_contain_text(re.compile("cannot tell", re.IGNORECASE))
    see("8-verify")
    page.get_by_label("What was seen").fill("No change that one run each could show.")
    page.get_by_role("button", name="Close it as no effect").click()
    expect(page.locator(".pill", has_text="no effect").first).to_be_visible()


def test_two_people_see_and_dispute_the_same_finding(page: Page, browser: Browser, server: Server, shot: Shot) -> None:
    page.goto(f"{server.url}/people")
    page.get_by_role("button", name="Make a one-time link").click()
    link = page.locator("#made-link").inner_text()
    other = browser.new_page()
    name = f"bob{page.viewport_size['width']}" if page.viewport_size else "bob"
    other.goto(link)
    other.get_by_label("Your name here").fill(name)
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Start").click()

    page.goto(server.url)
    page.get_by_role("button", name="Open it").click()
    page.get_by_placeholder("their name").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()
    address = page.url.rsplit("/", 1)[0] + "/diagnosis"
    other.goto(f"{address}#hypothesis-compute_bound")
    finding = other.locator("#hypothesis-compute_bound")
    finding.get_by_text("Agree, dispute or ask").click()
    finding.get_by_label("Reason").fill("330 W is normal for decode")
    finding.get_by_role("button", name="Dispute").click()
    page.goto(address)
    expect(page.locator("main")).to_contain_text("330 W is normal for decode")
    shot(page, f"9-disputed-{name}")
    other.close()
