"""Names that would run: given wherever a machine or a person can give one, then every page of the session is
opened with everything on it unfolded. None makes an element, asks for anything or runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urldefrag

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Server, sign_in

pytestmark = pytest.mark.browser

NAME = "\"'><img src=/q7.png onerror=q7()><script>q7()</script><svg/onload=q7()>"
GUEST = f"""\
op@llm:~$ nvidia-smi --query-gpu=index,name,pci.bus_id,driver_version,mig.mode.current --format=csv
index, name, pci.bus_id, driver_version, mig.mode.current
0, NVIDIA {NAME}, 00000000:00:10.0, 590.48.01, Disabled
1, NVIDIA {NAME}, 00000000:00:11.0, 590.{NAME}, Disabled
op@llm:~$ nvidia-smi topo -p2p r
 \tGPU0\tGPU1\t
 GPU0\tX\tNS\t
 GPU1\tNS\tX\t
op@llm:~$ sudo dmesg
[    1.000000] \x1b[31mNVRM: {NAME}\x1b[0m
[    2.000000] NVRM: Xid (PCI:0000:00:10): 79, pid=1, name={NAME}, GPU has fallen off the bus.
op@llm:~$ lspci -nn
00:10.0 3D controller [0302]: NVIDIA Corporation {NAME} [10de:2bb5] (rev a1)
\x1b]8;;javascript:q7()\x07what nobody knows {NAME}\x1b]8;;\x07
"""
HOST = f"""\
root@{NAME}:~# qm config 128
root@pve:~# qm config 128
name: {NAME}
args: -cpu host,{NAME}
description: {NAME}
hostpci0: mapping={NAME}
machine: {NAME}
memory: 442368
tags: {NAME}
root@pve:~# cat /proc/cmdline
root=ZFS={NAME} boot=zfs
"""
# What only an element that a name has made would do; the policy's refusals are told, too.
TELL = """document.addEventListener("securitypolicyviolation", e => q7(e.violatedDirective + e.blockedURI))"""
VIEWS = re.compile(r"[?&](at|find|line)=")  # the same output once more
MOST_PAGES = 60


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def context(server: Server, account: str, browser: Browser, told: list[str]) -> Iterator[BrowserContext]:
    found = browser.new_context()
    found.expose_function("q7", lambda what="ran": told.append(str(what)))
    found.add_init_script(TELL)
    found.on("request", lambda asked: told.extend([asked.url] if "q7.png" in asked.url else []))
    page = found.new_page()
    sign_in(page, server)
    expect(page.get_by_role("heading", name="Where does the time per token go?")).to_be_visible()
    page.close()
    yield found
    found.close()


def test_no_name_makes_an_element_or_runs_on_any_page(page: Page, server: Server, told: list[str]) -> None:
    session = _given(page, server)
    seen = _walked(page, session)
    assert told == []
    assert len(seen) > 30
    assert any("/evidence/" in address for address in seen)
    # Had one made an element, it would have been told.
    page.evaluate("name => { document.querySelector('main').innerHTML = name }", NAME)
    page.locator("main img").evaluate("image => image.decode().catch(() => null)")
    page.wait_for_timeout(100)
    assert any("q7.png" in what for what in told)
    assert any("script-src" in what for what in told)
    told.clear()


def _given(page: Page, server: Server) -> str:
    """A session that has the name everywhere; its address."""
    page.goto(server.url)
    page.get_by_label("Name of this case").fill(NAME)
    page.get_by_role("button", name="Start a session").click()
    page.wait_for_url("**/symptom")
    session = page.url.removesuffix("/symptom")
    page.get_by_label("What is wrong?").fill(NAME)
    page.get_by_role("button", name="Save and go on").click()
    page.get_by_label("In your own words").fill(NAME)
    page.get_by_role("button", name="Save and look at the guest").click()
    _paste(page, GUEST)
    page.goto(f"{session}/host")
    _paste(page, HOST)
    page.goto(f"{session}/guest")
    page.get_by_label("Files").first.set_input_files(
        {"name": f"{NAME.replace('/', '')}.txt", "mimeType": "text/plain", "buffer": GUEST.encode()}
    )
    _press(page, "Read it")
    page.goto(f"{session}/discussion?about=gate:pcie-driver")
    _unfold(page)
    page.get_by_label("Reason").first.fill(NAME)
    _press(page, "Dispute")
    return session


def _paste(page: Page, text: str) -> None:
    page.get_by_label("Parts are fine, and so is a plain terminal log with prompts").fill(text)
    _press(page, "Read it")
    expect(page.get_by_text("understood").first).to_be_visible()


def _press(page: Page, button: str) -> None:
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name=button).first.click()
    page.wait_for_load_state("networkidle")


def _walked(page: Page, session: str) -> set[str]:
    """Every page of the session that a link leads to, and the lists that show its name."""
    root = session.partition("/sessions/")[0]
    todo = [f"{session}/diagnosis", f"{root}/", f"{root}/search?q=img", f"{root}/for-me"]
    seen: set[str] = set()
    while todo and len(seen) < MOST_PAGES:
        address = todo.pop(0)
        if address in seen or not _is_page(page, address):
            continue
        seen.add(address)
        page.goto(address)
        _unfold(page)
        links = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
        assert not [link for link in links if link.startswith("javascript:")]
        todo += [
            found for link in links if (found := urldefrag(link)[0]).startswith(session) and not VIEWS.search(found)
        ]
    return seen


def _is_page(page: Page, address: str) -> bool:
    answer = page.request.get(address)
    is_html = answer.headers.get("content-type", "").startswith("text/html")
    return is_html and "attachment" not in answer.headers.get("content-disposition", "")


def _unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    page.wait_for_load_state("networkidle")
