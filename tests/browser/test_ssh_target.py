"""A real machine over ssh, in a real browser: first contact, live readings, cancel, a changed key."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from agents.facts.platform import KERNEL_CMDLINE
from tests.agents.conftest import Sshd
from tests.browser.conftest import Server, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.service]
Shot = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def signed_in(server: Server, account: str, browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    sign_in(context.new_page(), server)
    yield context
    context.close()


@pytest.fixture
def page(server: Server, signed_in: BrowserContext) -> Iterator[Page]:
    """A new session, at “Look at the guest”."""
    found = signed_in.new_page()
    complaints: list[str] = []
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.goto(server.url)
    found.get_by_label("Name of this case").fill("Over ssh")
    found.get_by_role("button", name="Start a session").click()
    found.locator(".rail").get_by_role("link", name=re.compile("Look at the guest")).click()
    yield found
    found.close()
    assert not complaints


@pytest.fixture
def held(sshd: Sshd, tmp_path: Path) -> Path:
    """The machine's nvidia-smi answers once this file is there; each session writes to "entered"."""
    folder, release = tmp_path / "bin", tmp_path / "release"
    folder.mkdir()
    smi = folder / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\n# peerpath-held\nwhile [ ! -e {release} ]; do sleep 0.1; done\nexit 9\n")
    smi.chmod(0o755)
    sshd.stop()
    sshd.start(more=_recorded(tmp_path))
    return release


def _recorded(tmp_path: Path) -> str:
    """sshd_config: that nvidia-smi first on PATH, and a note of every session that is opened."""
    enter = tmp_path / "enter"
    enter.write_text(
        f'echo one >>{tmp_path}/entered\nexport PATH="{tmp_path}/bin:$PATH"\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    return f"ForceCommand sh {enter}"


def _entered(tmp_path: Path) -> int:
    record = tmp_path / "entered"
    return len(record.read_text().splitlines()) if record.exists() else 0


def _add(page: Page, sshd: Sshd) -> None:
    page.get_by_label("Host", exact=True).fill("127.0.0.1")
    page.get_by_label("Port").fill(str(sshd.port))
    page.get_by_label("User").fill(getpass.getuser())
    page.get_by_label("Key file").fill(str(sshd.folder / "user_key"))
    page.get_by_role("button", name="Add it over SSH").click()


def _run(page: Page) -> None:
    page.get_by_role("button", name=re.compile(r"Run the \d+ probes")).click()


def test_first_contact_then_readings_as_they_come(
    page: Page, sshd: Sshd, held: Path, tmp_path: Path, shot: Shot
) -> None:
    _add(page, sshd)
    expect(page.get_by_role("heading", name="Is this the machine you mean?")).to_be_visible()
    expect(page.locator("main")).to_contain_text(sshd.pin().fingerprint)
    shot(page, "ssh-1-first-contact")
    page.get_by_role("link", name=re.compile("Look at the guest")).first.click()
    expect(page.locator("main")).to_contain_text("Nothing is sent before a person has accepted")
    expect(page.get_by_role("button", name=re.compile("Run the"))).to_have_count(0)
    page.get_by_role("link", name="Check its host key").click()
    page.get_by_role("button", name="Yes, pin this key").click()
    expect(page.get_by_text("host key pinned")).to_be_visible()

    page.get_by_text(re.compile("Every command that will run")).click()
    page.locator("details.asks", has_text="cat /proc/cmdline").first.locator("summary").click()
    expect(page.locator("pre.command", has_text="cat /proc/cmdline").first).to_be_visible()
    assert _entered(tmp_path) == 0, "so far only keys were exchanged"

    _run(page)
    run = page.locator("#run-1")
    expect(run).to_contain_text("guest.kernel_cmdline", timeout=20_000)
    expect(run.locator(".pill").first).to_contain_text("running")
    expect(run).not_to_contain_text("guest.p2p_read")
    shot(page, "ssh-2-live")
    facts = page.locator("#facts")
    expect(facts).to_contain_text("Nothing yet")
    held.touch()
    expect(run.locator(".pill").first).to_contain_text(re.compile("succeeded|partly"), timeout=60_000)
    expect(run).to_contain_text("guest.p2p_read")
    expect(run.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(facts).to_contain_text(KERNEL_CMDLINE.title)
    expect(facts).not_to_contain_text("Nothing yet")
    assert _entered(tmp_path) == 1, "one script over one channel"


def test_cancel_ends_what_runs_there_and_keeps_what_came(
    page: Page, sshd: Sshd, held: Path, alive: Callable[[str], list[int]], tmp_path: Path
) -> None:
    _add(page, sshd)
    page.get_by_role("button", name="Yes, pin this key").click()
    _run(page)
    run = page.locator("#run-1")
    expect(run).to_contain_text("guest.kernel_cmdline", timeout=20_000)
    assert alive(str(tmp_path / "bin/nvidia-smi"))
    run.get_by_role("button", name="Cancel").click()
    expect(run.locator(".pill").first).to_contain_text("cancelled", timeout=20_000)
    expect(run).to_contain_text("guest.kernel_cmdline")
    assert not alive(str(tmp_path / "bin/nvidia-smi"))
    page.reload()
    expect(page.locator("#run-1")).to_contain_text("cancelled")
    expect(page.locator("main")).to_contain_text("What is known of the guest")


def test_live_output_goes_on_after_a_reload_and_after_a_lost_connection(page: Page, sshd: Sshd, held: Path) -> None:
    _add(page, sshd)
    page.get_by_role("button", name="Yes, pin this key").click()
    _run(page)
    run = page.locator("#run-1")
    expect(run).to_contain_text("guest.kernel_cmdline", timeout=20_000)
    page.reload()
    expect(run).to_contain_text("guest.kernel_cmdline")
    expect(run.locator(".pill").first).to_contain_text("running")
    page.context.set_offline(True)
    lost = page.get_by_role("status").get_by_text("Connection to Peerpath lost")
    expect(lost).to_be_visible()
    expect(page).to_have_title(re.compile("^connection lost · "))
    held.touch()
    time.sleep(2)
    page.context.set_offline(False)
    expect(run.locator(".pill").first).to_contain_text(re.compile("succeeded|partly"), timeout=60_000)
    for reading in ("guest.kernel_cmdline", "guest.p2p_read"):
        expect(run.get_by_text(reading, exact=False).first).to_be_visible()
    expect(lost).to_have_count(0)
    expect(page).to_have_title(re.compile("^(succeeded|partly) · "))


def test_the_focus_stays_while_a_run_is_shown_anew(page: Page, sshd: Sshd, held: Path) -> None:
    _add(page, sshd)
    page.get_by_role("button", name="Yes, pin this key").click()
    _run(page)
    run = page.locator("#run-1")
    cancel = run.get_by_role("button", name="Cancel")
    _tab_to(page, cancel)
    expect(run).to_contain_text("guest.kernel_cmdline", timeout=20_000)
    expect(cancel).to_be_focused()
    answer = run.get_by_role("link", name="guest.kernel_cmdline")
    _tab_to(page, answer)
    held.touch()
    expect(run).to_contain_text("guest.p2p_read", timeout=60_000)
    expect(answer).to_be_focused()


def test_the_focus_stays_in_a_run_that_is_cancelled(page: Page, sshd: Sshd, held: Path) -> None:
    _add(page, sshd)
    page.get_by_role("button", name="Yes, pin this key").click()
    _run(page)
    run = page.locator("#run-1")
    expect(run).to_contain_text("guest.kernel_cmdline", timeout=20_000)
    _tab_to(page, run.get_by_role("button", name="Cancel"))
    page.keyboard.press("Enter")
    expect(run.locator(".pill").first).to_contain_text("cancelled", timeout=20_000)
    expect(run).to_be_focused()
    page.keyboard.press("Tab")
    expect(run.locator(":focus")).to_be_visible()


def _tab_to(page: Page, stop: Locator) -> None:
    stop.wait_for()
    for _ in range(200):
        page.keyboard.press("Tab")
        if stop.evaluate("stop => stop === document.activeElement"):
            return
    raise AssertionError(f"Tab does not lead to {stop}")


def test_a_changed_host_key_blocks_until_a_person_has_looked(
    page: Page, sshd: Sshd, held: Path, tmp_path: Path, shot: Shot
) -> None:
    held.touch()
    _add(page, sshd)
    page.get_by_role("button", name="Yes, pin this key").click()
    sshd.stop()
    sshd.start("other_host_key", more=_recorded(tmp_path))
    _run(page)
    run = page.locator("#run-1")
    expect(run.locator(".pill").first).to_contain_text("failed", timeout=20_000)
    expect(run).to_contain_text("is not the accepted one")
    expect(run).to_contain_text(sshd.pin("other_host_key").fingerprint)
    shot(page, "ssh-3-blocked")

    page.get_by_role("link", name="host key pinned").click()
    expect(page.get_by_text(re.compile("has changed. Nothing will be sent"))).to_be_visible()
    for key in ("host_key", "other_host_key"):
        expect(page.locator("main")).to_contain_text(sshd.pin(key).fingerprint)
    expect(page.get_by_role("button", name="Yes, pin this key")).to_have_count(0)
    shot(page, "ssh-4-changed")
    assert _entered(tmp_path) == 0

    page.get_by_label(re.compile("to forget the pinned key")).fill("127.0.0.1")
    page.get_by_role("button", name="Forget the old key").click()
    page.get_by_role("button", name="Yes, pin this key").click()
    _run(page)
    expect(page.locator("#run-2 .pill").first).to_contain_text(re.compile("succeeded|partly"), timeout=60_000)
    assert _entered(tmp_path) == 1


def test_a_machine_that_is_not_there_is_told_with_what_to_do(page: Page, sshd: Sshd, shot: Shot) -> None:
    sshd.stop()
    _add(page, sshd)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("could not be reached")
    expect(alert).to_contain_text("Connection refused")
    shot(page, "ssh-5-unreachable")
    sshd.start()
    alert.get_by_role("link", name="try again").click()
    expect(page.get_by_role("heading", name="Is this the machine you mean?")).to_be_visible()
