"""What each main page weighs and how soon it is there, on a processor slowed 4 times.

`python -m bench.page_speed [--json]`: the server and the browser of bench.interactions, with an empty cache
at each page. Bytes are those of the network (CDP's Network domain), sent and unpacked; a request to anybody
else is a failure. First and largest paint, layout shift and long tasks are the browser's own entries;
blocking time is what tasks take beyond 50 ms each, from the first paint on. The interaction is the longest
event of opening the palette, closing it and moving on with Tab. At last a run is watched: what its live
fragments move. Ends with 1 when a limit is broken: weight, layout shift or a stranger. Times depend on the
machine, so they are only told.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import CDPSession, Page

from bench.interactions import address, slow_page

PAGES = (
    *("/", "symptom", "hypothesis", "guest", "path", "host", "diagnosis", "decide", "verify"),
    *("topology", "plan", "summary", "discussion", "log", "/search?q=gpu", "/decisions", "/for-me"),
    *("/help", "/help/probes", "/people", "/account"),
)
LARGEST_BYTES, MOST_SHIFT, LONG_TASK_MS = 100_000, 0.01, 50.0
KINDS = {"Document": "html", "Stylesheet": "css", "Script": "js"}
ALSO = """
measured.paint = {}, measured.began = [], measured.largest = 0;
const also = (type, told) => new PerformanceObserver(list => list.getEntries().forEach(told))
  .observe({type, buffered: true});
also('paint', e => { measured.paint[e.name] = e.startTime; });
also('largest-contentful-paint', e => { measured.largest = e.startTime; });
also('longtask', e => measured.began.push([e.startTime, e.duration]));
"""


@dataclass
class Traffic:
    """What one page asked for. sent and unpacked: bytes by kind of file."""

    base: str
    requests: int = 0
    strangers: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    unpacked: Counter[str] = field(default_factory=Counter)

    def listen(self, cdp: CDPSession) -> None:
        cdp.on("Network.requestWillBeSent", self._asked)
        cdp.on("Network.responseReceived", self._answered)
        cdp.on("Network.dataReceived", self._came)
        cdp.on("Network.loadingFinished", self._finished)

    def _asked(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        self.requests += 1
        if not url.startswith((self.base, "data:", "blob:")):
            self.strangers.append(url)

    def _answered(self, event: dict[str, Any]) -> None:
        self.kinds[event["requestId"]] = KINDS.get(event["type"], "other")

    def _came(self, event: dict[str, Any]) -> None:
        self.unpacked[self.kinds.get(event["requestId"], "other")] += event["dataLength"]

    def _finished(self, event: dict[str, Any]) -> None:
        kind = self.kinds.get(event["requestId"], "other")
        self.sent[kind] += int(event["encodedDataLength"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object a line")
    as_json = parser.parse_args().json
    if not as_json:
        print(f"load of this machine: {os.getloadavg()[0]:.1f}")
    with slow_page() as (page, base, session):
        page.add_init_script(ALSO)
        found = [_of(page, base, address(base, session, where), where) for where in PAGES]
        for row in found:
            _say(row, as_json)
        moved = _while_a_run_goes(page, session)
    print(json.dumps({"run_shift": moved}) if as_json else f"a run of probes moved {moved:.4f}")
    return int(moved > MOST_SHIFT or any(row["wrong"] for row in found))


def _of(page: Page, base: str, url: str, where: str) -> dict[str, Any]:
    """One page, its cache empty. Times in ms."""
    cdp, traffic = page.context.new_cdp_session(page), Traffic(base)
    traffic.listen(cdp)
    cdp.send("Network.enable")
    cdp.send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.goto(url, wait_until="networkidle")
    page.wait_for_timeout(1000)
    paint, largest, tasks = page.evaluate("[measured.paint, measured.largest, measured.began]")
    for key in ("Control+k", "Escape", "Tab"):
        page.keyboard.press(key)
        page.wait_for_timeout(300)
    cdp.detach()
    first = paint.get("first-contentful-paint", 0.0)
    long = [took for at, took in tasks if at + took > first]
    row = {
        "page": where,
        "html": [traffic.sent["html"], traffic.unpacked["html"]],
        "css": [traffic.sent["css"], traffic.unpacked["css"]],
        "js": [traffic.sent["js"], traffic.unpacked["js"]],
        "requests": traffic.requests,
        "strangers": traffic.strangers,
        "first_ms": first,
        "largest_ms": largest,
        "shift": page.evaluate("measured.moved"),
        "blocked_ms": sum(took - LONG_TASK_MS for took in long),
        "longest_task_ms": max((took for _, took in tasks), default=0.0),
        "interaction_ms": max(page.evaluate("measured.events"), default=0.0),
    }
    return row | {"wrong": _wrong(row)}


def _wrong(row: dict[str, Any]) -> list[str]:
    weight = row["css"][0] + row["js"][0]
    return [
        *([f"{weight} bytes of styles and scripts"] if weight > LARGEST_BYTES else []),
        *([f"moved by {row['shift']:.3f}"] if row["shift"] > MOST_SHIFT else []),
        *(f"asks {url}" for url in row["strangers"]),
    ]


def _say(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row))
        return
    bytes_of = " ".join(f"{k} {row[k][0] / 1e3:.0f}/{row[k][1] / 1e3:.0f}" for k in ("html", "css", "js"))
    task = f"{row['longest_task_ms']:.0f}" if row["longest_task_ms"] else "< 50"
    print(
        f"{row['page']:14} kB sent/unpacked: {bytes_of}; {row['requests']} requests; paint "
        f"{row['first_ms']:.0f}, largest {row['largest_ms']:.0f}; blocked {row['blocked_ms']:.0f}, longest "
        f"task {task}, interaction {row['interaction_ms']:.0f} ms; moved {row['shift']:.4f}"
        + "".join(f"   {text}" for text in row["wrong"])
    )


def _while_a_run_goes(page: Page, session: str) -> float:
    """Layout shift from the press of the button's page to the end of the run."""
    page.goto(f"{session}/guest?add=1", wait_until="networkidle")
    page.get_by_role("button", name="Use this machine").click()
    page.get_by_role("button", name=re.compile(r"Run the \d+ probes")).last.click()
    page.wait_for_selector("[data-run]:not([data-going]) .term", timeout=120_000)
    page.wait_for_timeout(1500)
    return float(page.evaluate("measured.moved"))


if __name__ == "__main__":
    sys.exit(main())
