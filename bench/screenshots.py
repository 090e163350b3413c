"""`./run screenshots FOLDER [--readme]`: pictures of every page of a new installation with the sample case.

Each page is shown light, dark and 390 pixels wide. Needs Playwright and Chromium, as `./test` does.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webapp.pages.help.pages import PAGES as HELP_PAGES

try:  # what tests need, and nobody who serves: requirements-test.txt
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    NEEDS = "Pictures need Playwright and Chromium; `./run screenshots` uses those of `./test`."
else:
    NEEDS = ""

MANAGE = Path(__file__).resolve().parents[1] / "manage.py"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
# name: (width in CSS pixels, theme)
LOOKS = {"light": (1440, "light"), "dark": (1440, "dark"), "390": (390, "light")}
STAGES = ("first", "host", "after")
STEPS = ("symptom", "hypothesis", "guest", "path", "host", "diagnosis", "decide", "verify")
OF_A_SESSION = (*STEPS, "topology", "plan", "summary", "discussion", "log")
ALONE = ("", "search", "decisions", "for-me", "calibration", "keys", "account", "help")
OF_ADMINISTRATORS = ("people", "webhooks", "stuck")
# What who holds a link sees, without an account.
BY_LINK = ("asked",)
# README.md shows these, as docs/<file>.webp.
DOCS = Path(__file__).resolve().parents[1] / "docs"
SHOWN = {"host/diagnosis": "session", "host/topology": "topology", "asked": "asked", "after/verify": "verify"}
SHOWN_LOOK = "light"
HEIGHT_PX = 900
# README.md's pictures end where the window does: they are looked at in passing.
AS_WEBP = """async ({png, height}) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const sheet = new OffscreenCanvas(image.width, Math.min(image.height, height));
  sheet.getContext("2d").drawImage(image, 0, 0);
  const made = await sheet.convertToBlob({type: "image/webp", quality: 0.85});
  const bytes = new Uint8Array(await made.arrayBuffer());
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}"""
PATIENCE_S = 60


def main() -> None:
    parser = argparse.ArgumentParser(prog="run screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go; made when it is not there")
    parser.add_argument("--readme", action="store_true", help="renew README.md's pictures, too")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if NEEDS or not chromium:
        sys.exit(NEEDS or "Pictures need Chromium: apt install chromium.")
    with served() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        count = sum(_pictures(browser, link, options.folder))
        if options.readme:
            _renew(browser, options.folder)
        browser.close()
    print(f"{count} pictures in {options.folder}")


def _pictures(browser: Browser, link: str, into: Path) -> Iterator[bool]:
    """Takes one of each page in each look; whether it was taken."""
    state, pages = _signed_in(browser, link)
    for look, (width, theme) in LOOKS.items():
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT_PX},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            storage_state=state,
        )
        for name, address in pages.items():
            if name in BY_LINK:
                context.clear_cookies()
            page = context.new_page()
            yield _take(page, address, _file(into, name, look))
            page.close()
        context.close()


def _take(page: Page, address: str, file: Path) -> bool:
    answer = page.goto(address, wait_until="load")
    if answer is None or answer.status != 200:
        print(f"{address} answered {answer.status if answer else 'nothing'}", file=sys.stderr)
        return False
    page.wait_for_timeout(300)  # fragments that are asked for on load
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file, full_page=True)
    if wider := page.evaluate("document.documentElement.scrollWidth - innerWidth"):
        print(f"{file} is {wider} px too wide", file=sys.stderr)
    return True


def _renew(browser: Browser, into: Path) -> None:
    """README.md's pictures from those that were taken, made small by the browser itself."""
    page = browser.new_page()
    for name, picture in SHOWN.items():
        png = base64.b64encode(_file(into, name, SHOWN_LOOK).read_bytes()).decode()
        made = page.evaluate(AS_WEBP, {"png": png, "height": HEIGHT_PX})
        (DOCS / f"{picture}.webp").write_bytes(base64.b64decode(made))
    page.close()


def _file(into: Path, name: str, look: str) -> Path:
    return into / f"{name.replace('/', '-') or 'start'}.{look}.png"


def _signed_in(browser: Browser, link: str) -> tuple[Any, dict[str, str]]:
    """The first administrator's cookies, and the address of every page by its name."""
    base = link.partition("/welcome/")[0]
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Your name here").fill("operator")
    page.get_by_label("Password").fill("a password for pictures")
    page.get_by_role("button", name="Start").click()
    pages = {path: f"{base}/{path}" for path in (*ALONE, *OF_ADMINISTRATORS)}
    for stage in STAGES:
        page.goto(base)
        page.get_by_label("As known after").select_option(stage)
        page.get_by_role("button", name="Open it").last.click()
        page.wait_for_url("**/symptom")
        session = page.url.removesuffix("/symptom")
        pages |= {f"{stage}/{path}": f"{session}/{path}" for path in OF_A_SESSION}
    pages["host/evidence"] = _first_evidence(page, pages["host/diagnosis"])
    pages |= {f"help/{slug}": f"{base}/help/{slug}" for slug in HELP_PAGES}
    pages["asked"] = _link_made(page, pages["host/host"])  # the last, since it signs out
    state = context.storage_state()
    context.close()
    return state, pages


def _first_evidence(page: Page, diagnosis: str) -> str:
    page.goto(diagnosis)
    href = page.locator("a.ev[href*='/evidence/']").first.get_attribute("href") or ""
    return diagnosis.partition("/sessions/")[0] + href


def _link_made(page: Page, step: str) -> str:
    """The address that the host's admin is sent."""
    page.goto(step)
    page.get_by_label("Who gets it").fill("Erika")
    page.get_by_role("button", name="Make the link").click()
    return page.locator("pre", has_text="/link/").first.inner_text().strip()


@contextmanager
def served() -> Iterator[str]:
    """A server of its own with an empty data folder; gives the one-time link it prints."""
    with tempfile.TemporaryDirectory(prefix="peerpath-screenshots-") as data:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "PEERPATH_DATA": data, "PEERPATH_PUBLIC_URL": url}
        environment |= {"PEERPATH_DATABASE_URL": "", "PEERPATH_REDIS_URL": "", "PYTHONUNBUFFERED": "1"}
        log = Path(data, "serve.txt")
        with log.open("wb") as sink:
            command = [sys.executable, str(MANAGE), "serve", "--port", str(port)]
            process = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink)
        try:
            yield _link(process, log)
        finally:
            process.terminate()
            process.wait(timeout=20)


def _link(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(PATIENCE_S * 4):
        if process.poll() is not None:
            break
        if match := re.search(r"http\S+/welcome/\S+", log.read_text()):
            return match[0]
        time.sleep(0.25)
    sys.exit(f"The server did not start:\n{log.read_text()}")


if __name__ == "__main__":
    main()
