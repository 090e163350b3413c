"""How long a log of a million lines takes to open, to be searched and to be scrolled through.

    python -m bench.long_log sqlite|postgresql|bucket [--lines 1000000] [--times 20]

The log is given as a person gives one, a part of it in colours. Server time: of a request through the whole
middleware, in this process; CPU: of this process, which with SQLite is all there is. Browser: Chromium on
the real server over loopback, from the start of the navigation to the frame in which the first rows
stand; then the wheel through some thousand lines, jumps to places far away, and every task that kept the
page from answering. bucket: SQLite, the outputs in a server that speaks S3 (moto).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from bench.stack import ROOT, free_port, stack, wait_for_port

OPENS_WITHIN_MS, LONGEST_TASK_MS = 300.0, 100.0
CHROMIUM = "/usr/bin/chromium"
QUIET = ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update")
WATCH = """
window.tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((task) => task.duration)))
  .observe({ type: "longtask", buffered: true });
const look = () => document.querySelector("[data-lines] [data-n]")
  ? requestAnimationFrame(() => setTimeout(() => { window.shown = performance.now(); }))
  : requestAnimationFrame(look);
look();
"""


def log_of(lines: int) -> bytes:
    """About 60 bytes a line, as a kernel's log has them; every tenth has a colour."""

    def line(n: int) -> str:
        what = f"\x1b[3{n % 8}mpcieport\x1b[0m AER:" if n % 10 == 0 else "nvidia: event"
        mixed = n * 2654435761 % 2**32
        return f"[{n / 7:13.6f}] 0000:{n % 256:02x}:00.0 {what} {mixed:08x} done"

    return "\n".join(map(line, range(1, lines + 1))).encode()


@contextlib.contextmanager
def database(kind: str) -> Iterator[None]:
    """Migrated and empty; this process's Django uses it, and so does what it starts."""
    if kind == "postgresql":
        with stack(PEERPATH_REDIS_URL=""):
            yield
        return
    with tempfile.TemporaryDirectory(prefix="peerpath-log-") as folder, contextlib.ExitStack() as also:
        nothing = ("PEERPATH_DATABASE_URL", "PEERPATH_REDIS_URL")
        os.environ |= {"PEERPATH_DATA": folder, **dict.fromkeys(nothing, "")}
        if kind == "bucket":
            also.enter_context(bucket())
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, check=True)
        yield


@contextlib.contextmanager
def bucket() -> Iterator[None]:
    """A server that speaks S3, a process of its own so that its work is not counted as ours."""
    import boto3

    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    port = str(free_port())
    with started("-m", "moto.server", "-p", port, port=int(port)) as where:
        made = boto3.resource("s3", endpoint_url=where, region_name="us-east-1")
        made.Bucket("logs").create()
        place = f"s3://logs/evidence?endpoint={where}&region=us-east-1"
        os.environ["PEERPATH_EVIDENCE_URL"] = place
        yield


@contextlib.contextmanager
def started(*arguments: str, port: int) -> Iterator[str]:
    """The address of a server in Python, once it listens."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def given(lines: int) -> tuple[Any, str]:
    """Who may read it, and where it is."""
    from webapp.accounts.models import User
    from webapp.triage import intake
    from webapp.triage.sessions import session_open

    reader = User.objects.create(username="bench", is_staff=True)
    session = session_open(owner=reader, title="A long log")
    raw = log_of(lines)
    began = time.perf_counter()
    evidence = intake.take_text(session, raw, user=reader, label="kernel.log", origin="upload")
    took = time.perf_counter() - began
    print(f"{lines:,} lines, {len(raw) / 1e6:.0f} MB, taken and read in {took:.1f} s", flush=True)
    return reader, f"/sessions/{session.pk}/evidence/{evidence.evidence.name}"


def asked(client: Any, address: str, times: int) -> str:
    """The median and the 95th percentile of so many requests, by the clock and of this process's CPU."""
    clock, cpu = [], []
    for _ in range(times):
        begun, spent = time.perf_counter(), time.process_time()
        answer = client.get(address)
        clock.append((time.perf_counter() - begun) * 1e3)
        cpu.append((time.process_time() - spent) * 1e3)
        assert answer.status_code == 200, answer.status_code
    high = statistics.quantiles(clock, n=20)[-1]
    return (
        f"p50 {statistics.median(clock):6.1f} ms  p95 {high:6.1f} ms  CPU {statistics.median(cpu):6.1f} ms"
        f"  {len(answer.content) / 1e3:.0f} kB"
    )


def in_a_browser(cookie: str, base: str, address: str, lines: int, times: int) -> bool:
    """Prints when the first rows stood and what kept the page busy; whether both are as promised."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        options = [f"--{name}" for name in QUIET]
        context = play.chromium.launch(executable_path=CHROMIUM, args=options).new_context()
        context.add_cookies([{"name": "peerpath_session", "value": cookie, "url": base}])
        context.add_init_script(WATCH)
        page = context.new_page()
        _opened(page, base + address)  # the server judges its first case
        opened = sorted(_opened(page, base + address) for _ in range(times))
        held = _scrolled(page, lines)
    middle, high = statistics.median(opened), statistics.quantiles(opened, n=20)[-1]
    print(f"load of this machine {os.getloadavg()[0]:.1f}")
    print(f"first rows in the browser: p50 {middle:.0f} ms, p95 {high:.0f} ms, worst {opened[-1]:.0f}")
    print(f"while scrolling: {len(held)} tasks over 50 ms, the longest {max(held, default=0):.0f} ms")
    return middle < OPENS_WITHIN_MS and max(held, default=0) < LONGEST_TASK_MS


def _opened(page: Any, address: str) -> float:
    page.goto(address)
    page.wait_for_function("window.shown")
    return float(page.evaluate("window.shown"))


def _scrolled(page: Any, lines: int) -> list[float]:
    page.evaluate("tasks.length = 0")
    page.locator("[data-lines]").hover()
    for _ in range(200):
        page.mouse.wheel(0, 900)
        page.wait_for_timeout(20)
    reached = page.evaluate("+document.querySelector('[data-lines]').lastElementChild.dataset.n")
    kept = page.evaluate("document.querySelector('[data-lines]').childElementCount")
    print(f"scrolled to line {reached:,}; {kept} rows in the page")
    page.locator("[data-lines]").focus()
    for key, line in (("End", lines), ("Home", 1)):
        page.keyboard.press(key)
        page.wait_for_selector(f'[data-n="{line}"]')
    for share in (0.25, 0.5, 0.75):
        page.locator("[data-place-slider]").fill(str(int(lines * share)))
        page.wait_for_selector(f'[data-n="{int(lines * share)}"]')
    return [float(ms) for ms in page.evaluate("tasks")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=("sqlite", "postgresql", "bucket"))
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    with contextlib.ExitStack() as around:
        around.enter_context(database(options.kind))
        import django

        django.setup()
        from django.conf import settings
        from django.test import Client

        settings.ALLOWED_HOSTS = ["testserver"]
        reader, address = given(options.lines)
        client = Client()
        client.force_login(reader)
        client.get(address)  # rules and templates are loaded
        last = options.lines
        for what, query in {
            "its page": "",
            "the end": f"?at={last}",
            "rows in the middle": f"?rows={last // 2}",
            "rows, with words found": f"?rows={last // 2}&find=AER",
            "words that are rare": f"?find={last // 7}.",
            "words that are nowhere": "?find=xyzzy",
        }.items():
            print(f"{what:24} {asked(client, address + query, options.times)}", flush=True)
        cookie = client.cookies["peerpath_session"].value
        port = free_port()
        serve = ("manage.py", "serve", "--port", str(port))
        base = around.enter_context(started(*serve, port=port))
        kept = in_a_browser(cookie, base, address, last, options.times)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
