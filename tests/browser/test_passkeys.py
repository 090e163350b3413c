"""A passkey from being added to signing in, with Chromium's virtual authenticator.

Browsers give passkeys to localhost by name and to no numeric address: a server of its own."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.browser.conftest import NAME, PASSWORD, Server, served, sign_in

pytestmark = pytest.mark.browser
Shot = Callable[[Page, str], None]
KEY = {"protocol": "ctap2", "transport": "usb", "hasUserVerification": False, "automaticPresenceSimulation": True}


@pytest.fixture
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory, "localhost") as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def _with_a_key(page: Page) -> tuple[CDPSession, str]:
    browser = page.context.new_cdp_session(page)
    browser.send("WebAuthn.enable")
    made = browser.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})
    return browser, str(made["authenticatorId"])


def _code(secret: str) -> str:
    key = base64.b32decode(secret.replace(" ", ""))
    return TOTP(key, 6, SHA1(), 30).generate(int(time.time())).decode()


def test_a_passkey_signs_in_after_the_password(page: Page, named: Server, shot: Shot) -> None:
    page.goto(named.first_link)
    page.get_by_label("Your name here").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
    page.goto(f"{named.url}/account/second-factor")
    page.get_by_label("The code that it shows").fill(_code(page.locator(".secret").inner_text()))
    page.get_by_role("button", name="Turn it on").click()
    expect(page.get_by_role("heading", name="On. Keep these recovery codes")).to_be_visible()

    browser, key = _with_a_key(page)
    page.goto(f"{named.url}/account/second-factor")
    page.get_by_label("What you call it").fill("the key on my desk")
    page.locator("#passkey-password").fill(PASSWORD)
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.locator("#passkeys")).to_contain_text("the key on my desk added")
    shot(page, "passkeys-1-added")

    page.context.clear_cookies()
    sign_in(page, named)
    expect(page.get_by_role("button", name="Use a passkey")).to_be_visible()
    shot(page, "passkeys-2-asked")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Where does the time per token go?")).to_be_visible()

    browser.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": key})
    browser.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})
    page.context.clear_cookies()
    sign_in(page, named)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.locator("form[data-passkey] [role=alert]")).to_contain_text("gave no passkey")
    expect(page.get_by_label("Code, or one of your recovery codes")).to_be_visible()
