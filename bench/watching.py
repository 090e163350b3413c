"""What fifty people who watch one run wait for, whether they see every line, and what memory that takes.

    python -m bench.watching [--people 50] [--seconds 60] [--lines 4] [--minutes 0]

PostgreSQL, Redis, one worker and the web server as docker-compose.yml starts them; a machine whose stand-in
for Python prints numbered lines, so many a second. Each person has an account and a cookie of their own and
asks for the run's live fragment every 700 ms, as the page does, saying what they have. A fragment shows the
last lines: one that no answer showed is lost, and one that an answer shows twice, or out of order, is counted
too; afterwards the stored output must have each line once. Latency is from sending a request to the whole
answer; a line says when it was printed, so that the time until a person's answer has it is told, too.

--minutes: run after run for so long, with the same people watching; the resident memory of the web server
and of the worker, their children included, is read every 5 s. Told is the slope of the means of each minute
after the third, with its 95 % interval (least squares, Student's t). The watchers share this machine's cores.
"""

from __future__ import annotations

import argparse
import http.client
import math
import re
import statistics
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.stack import Machine, Stack, administrator, stack, target_of, wait_for_port

EVERY_S, SAMPLE_S, LIMIT_MS = 0.7, 5.0, 300.0
LONGEST_RUN_S = 150  # the benchmark's own limit is above it
WARM_MINUTES = 3
PRINTS = """#!/bin/sh
n=0
while [ $n -lt {count} ]; do
  n=$((n + 1)); echo "line $n of the numbered ones, at $(date +%s.%N)"; sleep {pause_s}
done
"""
_SEEN = re.compile(r"\?seen=([\w-]+)")
_LINE = re.compile(r"<div>line (\d+) of the numbered ones, at ([\d.]+)")


@dataclass
class Watcher:
    """One person. took_ms: of every request; shown: lines seen so far, and after_ms how long after they were
    printed; wrong: answers whose lines are not consecutive. failures: by status, or by what went wrong with
    the connection."""

    port: int
    cookie: str
    address: str
    took_ms: list[float] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    after_ms: list[float] = field(default_factory=list)
    wrong: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    seen: str = "queued"

    def watch(self, begin_after_s: float) -> None:
        time.sleep(begin_after_s)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        due = time.monotonic()
        while not self.ended:
            try:
                self.ask(connection)
            except (OSError, http.client.HTTPException) as error:
                self.failures[type(error).__name__] += 1
                connection.close()
            due = max(due + EVERY_S, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        connection.close()

    def ask(self, connection: http.client.HTTPConnection) -> None:
        headers = {"Cookie": self.cookie, "HX-Request": "true"}
        began = time.perf_counter()
        connection.request("GET", f"{self.address}?seen={self.seen}", headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        self.took_ms.append((time.perf_counter() - began) * 1e3)
        if answer.status == 200:
            self.read(text)
        elif answer.status != 204:
            self.failures[str(answer.status)] += 1

    def read(self, text: str) -> None:
        now, found_lines = time.time(), [(int(n), float(at)) for n, at in _LINE.findall(text)]
        lines = [number for number, _ in found_lines]
        self.wrong += lines != list(range(lines[0], lines[0] + len(lines))) if lines else 0
        self.after_ms += [(now - at) * 1e3 for n, at in found_lines if n not in self.shown]
        self.shown.update(lines)
        found = _SEEN.search(text)
        self.ended = found is None
        self.seen = found[1] if found else self.seen


@dataclass(frozen=True)
class Watched:
    """What one run gave. lost: of all people together; the last lines of a run are shown by its end."""

    took_ms: list[float]
    after_ms: list[float]
    lost: int
    wrong: int
    failures: Counter[str]
    stored_once: bool


def numbered(made: Stack, count: int, a_second: int) -> Machine:
    """A machine whose stand-in for Python prints so many numbered lines."""
    tools = made.folder / "numbered"
    tools.mkdir()
    (tools / "python3").write_text(PRINTS.format(count=count, pause_s=1 / a_second))
    (tools / "python3").chmod(0o755)
    return made.add_machine(tools)


def cookies(session: Any, count: int) -> list[str]:
    """Of people who are members, signed in."""
    from django.conf import settings
    from django.test import Client

    from webapp.accounts.models import User
    from webapp.triage.models import SessionMember

    found = []
    for number in range(count):
        user = User.objects.create(username=f"watcher{number}")
        SessionMember.objects.create(session=session, user=user)
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        found.append(f"{name}={client.cookies[name].value}")
    return found


def watched(made: Stack, target: Any, user: Any, people: list[str], count: int) -> Watched:
    """One run from its start to its end."""
    from webapp.triage import runs

    python = str(made.folder / "numbered" / "python3")
    run = runs.queue_benchmark(target.session, target, user, "bench.copy", {"INTERPRETER": python})
    page = f"/sessions/{target.session_id}/runs/{run.pk}"
    watchers = [Watcher(made.web_port, cookie, page) for cookie in people]
    threads = [
        threading.Thread(target=watcher.watch, args=[n * EVERY_S / len(people)]) for n, watcher in enumerate(watchers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = b"".join(run.evidence.get().raw.splitlines(keepends=True)).decode()
    printed = [int(number) for number in re.findall(r"(?m)^line (\d+) of", stored)]
    # What was printed since the last look before the end is in the run's output, which the page opens.
    lost = sum(len(set(range(1, max(w.shown, default=0) + 1)) - w.shown) for w in watchers)
    return Watched(
        [ms for watcher in watchers for ms in watcher.took_ms],
        [ms for watcher in watchers for ms in watcher.after_ms],
        lost,
        sum(watcher.wrong for watcher in watchers),
        sum((watcher.failures for watcher in watchers), Counter()),
        printed == list(range(1, count + 1)),
    )


def resident_mib(pid: int) -> float:
    """Of a process and of everything it started."""
    pages, parents = 0, {pid}
    while parents:
        for process in parents:
            try:
                pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
            except OSError:
                continue
        parents = _children(parents)
    return pages * 4096 / 2**20


def _children(parents: set[int]) -> set[int]:
    found: set[int] = set()
    for parent in parents:
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            found |= {int(pid) for pid in file.read_text().split()}
    return found


def sampled(made: Stack, until: float, into: dict[str, list[tuple[float, float]]]) -> None:
    """(minutes, MiB) of each process, every 5 s."""
    began = time.monotonic()
    while time.monotonic() < until:
        for name, rows in into.items():
            minutes = (time.monotonic() - began) / 60
            rows.append((minutes, resident_mib(made.started[name].pid)))
        time.sleep(SAMPLE_S)


def slope(rows: list[tuple[float, float]]) -> tuple[float, float, float] | None:
    """MiB a minute and the ends of its 95 % interval, of the means of whole minutes; None of too few."""
    from webapp.diagnosis.compare.student import reach

    by_minute: dict[int, list[float]] = {}
    for minute, mib in rows:
        by_minute.setdefault(int(minute), []).append(mib)
    points = [(m, statistics.fmean(v)) for m, v in by_minute.items() if m >= WARM_MINUTES]
    if len(points) < 4:
        return None
    xs, ys = zip(*points, strict=True)
    line = statistics.linear_regression(xs, ys)
    middle, n = statistics.fmean(xs), len(xs)
    left = sum((y - line.intercept - line.slope * x) ** 2 for x, y in points)
    error = math.sqrt(left / (n - 2) / sum((x - middle) ** 2 for x in xs))
    half = reach(0.05, n - 2) * error
    return line.slope, line.slope - half, line.slope + half


def told(found: list[Watched]) -> bool:
    took = [ms for one in found for ms in one.took_ms]
    cuts = statistics.quantiles(took, n=100)
    after = statistics.quantiles((ms for one in found for ms in one.after_ms), n=100)
    lost, wrong = sum(one.lost for one in found), sum(one.wrong for one in found)
    failed: Counter[str] = sum((one.failures for one in found), Counter())
    stored = all(one.stored_once for one in found)
    print(f"{len(found)} runs, {len(took):,} requests, failed: {dict(failed) or 'none'}")
    print(f"p50 {cuts[49]:.0f} ms, p95 {cuts[94]:.0f} ms, p99 {cuts[98]:.0f} ms")
    print(f"from printed to shown: p50 {after[49]:.0f} ms, p95 {after[94]:.0f} ms")
    print(f"lines lost {lost}, answers with lines out of order {wrong}, stored once: {stored}")
    return cuts[94] < LIMIT_MS and stored and not (lost or wrong or failed)


def remembered(samples: dict[str, list[tuple[float, float]]]) -> None:
    for name, rows in samples.items():
        found = slope(rows)
        about = f"{rows[0][1]:.0f} MiB at first, {rows[-1][1]:.0f} at last" if rows else "no sample"
        grows = "too short for a slope"
        if found:
            each, low, high = found
            grows = f"{each:+.3f} MiB a minute, 95 % from {low:+.3f} to {high:+.3f}"
        print(f"{name}: {about}; {grows}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60, help="that a run prints")
    parser.add_argument("--lines", type=int, default=4, help="a second")
    parser.add_argument("--minutes", type=float, default=0.0)
    given = parser.parse_args()
    count = min(given.seconds, LONGEST_RUN_S) * given.lines
    with stack(PEERPATH_WEB_PROCESSES="2") as made:
        import django

        django.setup()
        from webapp.triage.sessions import session_open

        made.start_worker("worker")
        made.start_web()
        user: Any = administrator()
        session = session_open(owner=user, title="watching")
        target = target_of(session, numbered(made, count, given.lines), user)
        people = cookies(session, given.people)
        wait_for_port(made.web_port)
        time.sleep(10)  # a worker's importing takes longer than a short run
        samples: dict[str, list[tuple[float, float]]] = {"web": [], "worker": []}
        until = time.monotonic() + given.minutes * 60
        sampler = threading.Thread(target=sampled, args=[made, until, samples])
        sampler.start()
        found = [watched(made, target, user, people, count)]
        while time.monotonic() < until:
            found.append(watched(made, target, user, people, count))
        sampler.join()
        good = told(found)
        if given.minutes:
            remembered(samples)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
