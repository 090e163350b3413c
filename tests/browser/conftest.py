"""A real server in its own process and a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import port_for
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.agents.conftest import alive, ssh_keys, sshd

__all__ = ["alive", "ssh_keys", "sshd"]  # fixtures

ROOT = Path(__file__).resolve().parents[2]
NAME, PASSWORD = "alice", "correct horse battery"
CHROMIUM = "/usr/bin/chromium"
USED_UP = 410
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Server:
    url: str
    first_link: str


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory) as found:
        yield found


@contextmanager
def served(tmp_path_factory: pytest.TempPathFactory, host: str = "127.0.0.1") -> Iterator[Server]:
    """`serve` as ./run starts it, with an empty data folder."""
    url = f"http://{host}:{port_for.select_random()}"
    with started(url, tmp_path_factory.mktemp("served")) as log:
        found = re.search(r"http\S+/welcome/\S+", log.read_text())
        assert found, log.read_text()
        yield Server(url, found[0])


@contextmanager
def started(url: str, data: Path) -> Iterator[Path]:
    """A server with that data folder, once it answers; ended by its process id. Gives what it prints."""
    environment = {**os.environ, "PEERPATH_DATA": str(data), "PEERPATH_PUBLIC_URL": url, "PYTHONUNBUFFERED": "1"}
    log = data / "serve.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", url.rpartition(":")[2]],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(process, log, url)
            yield log
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait(process: subprocess.Popen[bytes], log: Path, url: str) -> None:
    """Until it answers."""
    for _ in range(240):
        assert process.poll() is None, log.read_text()
        if _answers(url):
            return
        time.sleep(0.25)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")


def _answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{url}/sign-in", timeout=30).status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One a file: while it is open its event loop runs, and the next file may use the database."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def account(server: Server, browser: Browser) -> str:
    """The first administrator, made by the printed link; a file before this one may have done so."""
    page = browser.new_page()
    answer = page.goto(server.first_link)
    if answer is not None and answer.status == USED_UP:
        page.close()
        return NAME
    page.get_by_label("Your name here").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Where does the time per token go?")).to_be_visible()
    page.close()
    return NAME


def sign_in(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sign-in")
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: not url.endswith("/sign-in"))  # or it asks for a second factor


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Keeps a picture of a page in $PEERPATH_SHOTS, when that is set."""
    folder = os.environ.get("PEERPATH_SHOTS")

    def keep(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{folder}/{name}.png", full_page=True)

    return keep


@pytest.fixture(scope="module")
def session(context: BrowserContext, server: Server) -> str:
    """The sample case after the admin's paste, by its address. context: the module's own, signed in."""
    page = context.new_page()
    page.goto(server.url)
    page.get_by_label("As known after").select_option("host")
    page.get_by_role("button", name="Open it").last.click()
    page.wait_for_url("**/symptom")
    found = page.url.removesuffix("/symptom")
    page.close()
    return found


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    found = context.new_page()
    yield found
    found.close()
