"""The host's admin, from a link to accepted evidence: two browsers, the real server, a stand-in host.

Hers is a phone's width and runs no JavaScript; the operator's polls."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Server, sign_in
from tests.webapp.handoff.stand_in import on_the_stand_in

pytestmark = [pytest.mark.browser, pytest.mark.service]
Shot = Callable[[Page, str], None]


@pytest.fixture
def operator(server: Server, account: str, browser: Browser) -> Page:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    sign_in(page, server)
    page.get_by_label("Name of this case").fill("Slower than expected")
    page.get_by_role("button", name="Start a session").click()
    page.locator(".rail").get_by_role("link", name="Ask the host").click()
    return page


def _made_link(operator: Page) -> str:
    operator.get_by_label("Who gets it").fill("Erika")
    operator.get_by_role("button", name="Make the link").click()
    link = operator.locator("#made-link").inner_text()
    operator.get_by_role("link", name="Back, and see how far it gets").click()
    return link


def _reached(operator: Page, step: str) -> None:
    """Seen by polling: the page is not loaded again."""
    expect(operator.locator(".steps li.done", has_text=step)).to_be_visible(timeout=10_000)


def test_from_a_link_to_accepted_evidence(operator: Page, browser: Browser, tmp_path: Path, shot: Shot) -> None:
    link = _made_link(operator)
    hers = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False, accept_downloads=True)
    page = hers.new_page()
    began = time.monotonic()
    page.goto(link)
    assert link.rpartition("/")[2] not in page.url
    expect(page.get_by_role("heading", name="alice asks for a look at your")).to_be_visible()
    shot(page, "link-1-asked")
    _reached(operator, "opened")

    with page.expect_download() as started:
        page.get_by_role("link", name="Download peerpath-host.sh").click()
    script = tmp_path / started.value.suggested_filename
    started.value.save_as(script)
    _reached(operator, "downloaded")
    assert b"host.vms" in on_the_stand_in(tmp_path, script, "--list")

    whole = on_the_stand_in(tmp_path, script)
    half = tmp_path / "host.txt"
    half.write_bytes(on_the_stand_in(tmp_path, script, "--only", "host.vms,host.kernel_cmdline"))
    page.get_by_label("Choose the file").set_input_files(half)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("llm-customer-one").first).to_be_visible()
    shorter = page.get_by_role("link", name="Download peerpath-host-rest.sh")
    expect(shorter).to_be_visible()
    shot(page, "link-2-half")
    _reached(operator, "read")

    with page.expect_download() as started:
        shorter.click()
    rest = tmp_path / started.value.suggested_filename
    started.value.save_as(rest)
    assert len(rest.read_bytes()) < len(script.read_bytes())
    said = on_the_stand_in(tmp_path, rest)
    assert len(said) < len(whole)
    page.get_by_label("or paste it").fill(said.decode())
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Nothing else is open")).to_be_visible()
    expect(page.get_by_text("⚠ note")).to_have_count(0)

    page.get_by_label("Yes").check()
    page.get_by_label("the VM’s configuration").check()
    page.get_by_role("button", name="Send these answers").click()
    expect(page.get_by_text("answered", exact=False).first).to_be_visible()
    expect(operator.get_by_text("answers understood")).to_have_count(2)
    operator.get_by_role("button", name="Accept what came").click()
    expect(operator.get_by_text("accepted by alice")).to_be_visible()
    shot(operator, "link-3-operator")
    page.reload()
    expect(page.get_by_text("alice has what was needed")).to_be_visible()
    assert time.monotonic() - began < 180, "hers takes under a minute where nothing else runs"
    operator.get_by_text("Close the link").click()
    operator.get_by_label(re.compile("to close it")).fill("Erika")
    operator.get_by_role("button", name="Yes, close it").click()
    expect(operator.get_by_text("■ closed")).to_be_visible()
    page.reload()
    expect(page.get_by_text("does not open, or not any more")).to_be_visible()
    hers.close()


def _proposed_with_a_link(operator: Page, server: Server) -> tuple[str, str]:
    """The sample's session with a proposal for the host, and a link that may approve it."""
    operator.goto(server.url)
    operator.get_by_role("button", name="Open it").click()
    session = operator.url.rsplit("/", 1)[0]
    operator.goto(f"{session}/decide")
    operator.locator("#option-gpudirect_clique input").check()
    operator.get_by_label("Why these, and why now").fill("The ladder stops at granted.")
    operator.get_by_role("button", name="Propose it").click()
    expect(operator.locator("#approvals")).to_contain_text("0 of 1 needed")
    operator.get_by_role("link", name="make a link").click()
    operator.get_by_label("They may approve or reject").check()
    return session, _made_link(operator)


def test_she_approves_by_a_link_what_touches_her_host(
    operator: Page, server: Server, browser: Browser, shot: Shot
) -> None:
    session, link = _proposed_with_a_link(operator, server)
    hers = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = hers.new_page()
    page.goto(link)
    record = page.locator("#decision-1")
    expect(record).to_contain_text("The ladder stops at granted.")
    record.get_by_label("Your name").fill("Erika Muster")
    record.get_by_label("Why, or why not").fill("Sunday is free.")
    record.get_by_role("button", name="Approve").click()
    expect(record).to_contain_text("approved")
    expect(record.get_by_role("button", name="Approve")).to_have_count(0)
    shot(page, "link-4-approved")
    hers.close()

    operator.goto(f"{session}/decisions/1")
    expect(operator.locator("#approvals")).to_contain_text("Erika Muster ⚠ by link")
    expect(operator.locator("#approvals")).to_contain_text("alice, who proposed this")
    shot(operator, "link-5-record")


def test_the_proposer_s_own_browser_is_no_second_person(operator: Page, server: Server, browser: Browser) -> None:
    _, link = _proposed_with_a_link(operator, server)
    operator.goto(link)
    expect(operator.locator("#decision-1")).to_contain_text("You are signed in as alice")
    expect(operator.locator("#decision-1").get_by_role("button")).to_have_count(0)
    other = browser.new_page()
    other.goto(link)
    expect(other.locator("#decision-1")).to_contain_text("alice, who proposed it, opened this link")
    expect(other.locator("#decision-1").get_by_role("button")).to_have_count(0)
    other.close()
