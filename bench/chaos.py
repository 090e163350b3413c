"""What is lost, stuck, done twice or left behind when parts of Peerpath are killed at random moments.

    python -m bench.chaos [--each 34] [--lease 5] [--seed 1]

A trial queues two runs on two of three machines, kills one thing at a random moment, starts it again,
and waits. Killed (SIGKILL; PostgreSQL by its immediate stop): one of two workers, the web server while
it is asked to queue, Redis without persistence, PostgreSQL, one ssh connection, a machine's sshd with
all its sessions. Everything is started and ended here.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.stack import Machine, Stack, administrator, stack, target_of, wait_for_port

KINDS = ("worker", "web", "redis", "postgres", "connection", "target")
T = TypeVar("T")
NAMES = ["guest.kernel_cmdline", "guest.topo_p2p_read", "guest.cpu"]
NOBODY_S = 120.0
SALVAGED_WITHIN_S = 15.0  # the reconciler's next pass, and one more
STUCK_AFTER_S = 30.0  # beyond the lease, as the promise says
GONE_WITHIN_S = 15.0
# Says which run began it, then takes between one second and three, with a child that is in no group of its.
SMI = """#!/bin/sh
echo "$PEERPATH_RUN" >> "$0.began"
if [ "$1" = topo ]; then
  setsid sleep 600 & beside=$!
  sleep "$(awk -v r="$$" 'BEGIN { srand(r); print 1 + 2 * rand() }')"
  kill $beside
fi
printf ' \\tGPU0\\tGPU1\\n GPU0\\tX\\tNS\\n GPU1\\tNS\\tX\\n'
"""


@dataclass
class Count:
    """What the promises are about. runs: queued; hit: at work when something was killed. requested: over
    HTTP, of a server that was killed, and said_yes, after which the run has to be there."""

    trials: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    hit: int = 0
    requested: int = 0
    said_yes: int = 0
    states: Counter[str] = field(default_factory=Counter)
    stuck: int = 0
    twice: int = 0
    evidence_lost: int = 0
    left_behind: int = 0
    longest_s: float = 0.0


def upper_limit(bad: int, of: int) -> float:
    """The 95 % upper limit of a share, one-sided (Clopper-Pearson)."""
    low, high = bad / of if of else 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(bad + 1))
        low, high = (p, high) if tail > 0.05 else (low, p)
    return high


class Chaos:
    def __init__(self, made: Stack, lease_s: float, seed: int) -> None:
        self.stack, self.lease_s, self.count = made, lease_s, Count()
        self.random = random.Random(seed)
        self.user: Any = administrator()
        from webapp.records.sessions import session_open

        self.session = session_open(owner=self.user, title="chaos")
        self.machines = [self._machine(n) for n in range(3)]
        self.targets = [target_of(self.session, m, self.user) for m in self.machines]
        self.cookie = self._signed_in()
        self.asking = ThreadPoolExecutor(2)

    def _machine(self, number: int) -> Machine:
        tools = self.stack.folder / f"tools-{number}"
        tools.mkdir()
        (tools / "nvidia-smi").write_text(SMI)
        (tools / "nvidia-smi").chmod(0o755)
        return self.stack.add_machine(tools)

    def _signed_in(self) -> str:
        from django.conf import settings
        from django.test import Client

        browser = Client()
        browser.force_login(self.user)
        name = settings.SESSION_COOKIE_NAME
        return f"{name}={browser.cookies[name].value}; csrftoken={'c' * 32}"

    # What is killed, and what starts it again.

    def hurt(self, kind: str) -> Callable[[], None]:
        made = self.stack
        if kind == "worker":
            name = self.random.choice(["worker-1", "worker-2"])
            made.kill(name)
            return lambda: made.start_worker(name)
        if kind == "web":
            made.kill("web")
            return self._web_again
        if kind == "redis":
            made.kill("redis")
            return made.start_redis
        if kind == "postgres":
            made.kill_postgres()
            return made.start_postgres
        port = self.random.choice(self.chosen).port
        machine = next(m for m in self.machines if m.port == port)
        if kind == "connection":
            machine.kill_sessions()
            return lambda: None
        machine.kill()
        return machine.start

    def _web_again(self) -> None:
        self.stack.start_web()
        wait_for_port(self.stack.web_port)  # or the next one asks nobody

    # One trial.

    def trial(self, kind: str) -> None:
        from webapp.records.models import Evidence

        self.count.trials[kind] += 1
        known = set(self._with_retry(lambda: list(Evidence.objects.values_list("pk", flat=True))))
        self.chosen = self.random.sample(self.targets, 2)
        ids = self._queue(kind, self.chosen)
        if kind != "web":
            time.sleep(self.random.uniform(0, 2.5))
        self.count.hit += len(self._at_work(ids)) if kind != "postgres" else 0
        again = self.hurt(kind)
        time.sleep(self.random.uniform(0.1, 1.5))
        again()
        ids |= self._queued_meanwhile(ids)
        self._wait(ids)
        self._judge(ids, known)

    def _queue(self, kind: str, chosen: list[Any]) -> set[Any]:
        from webapp.runs import lifecycle as runs

        if kind != "web":
            queued = [runs.queue_probes(self.session, t, self.user, NAMES) for t in chosen]
            self.count.runs += len(queued)
            return {run.pk for run in queued}
        # Asked for over HTTP by a request that the server may not survive.
        self.before = self._all_runs()
        self.requests = [self._post(target.pk) for target in chosen]
        time.sleep(self.random.uniform(0, 0.2))
        return set()

    def _post(self, target_id: int) -> Future[bool]:
        url = f"http://127.0.0.1:{self.stack.web_port}/sessions/{self.session.pk}/targets/{target_id}/run"
        headers = {"Cookie": self.cookie, "X-CSRFToken": "c" * 32}
        return self.asking.submit(_said_yes, urllib.request.Request(url, b"", headers, method="POST"))

    def _queued_meanwhile(self, ids: set[Any]) -> set[Any]:
        """Runs that the web server queued before it was killed; one it had said yes to must be there."""
        if ids:
            return set()
        said_yes = sum(answer.result(60) for answer in self.requests)
        made = self._all_runs() - self.before
        self.count.requested += len(self.requests)
        self.count.said_yes += said_yes
        self.count.evidence_lost += max(0, said_yes - len(made))
        self.count.runs += len(made)
        return made

    def _all_runs(self) -> set[Any]:
        from webapp.records.models import Run

        return self._with_retry(lambda: set(Run.objects.values_list("pk", flat=True)))

    def _at_work(self, ids: set[Any]) -> list[Any]:
        from webapp.records.models import Run

        return list(Run.objects.filter(pk__in=ids, state__in=["claimed", "running"]))

    def _wait(self, ids: set[Any]) -> None:
        """Stuck is a run whose lease ran out more than 30 s ago, or that nobody took two minutes after
        everything was started again."""
        from django.db.models import Q
        from django.utils import timezone

        from webapp.records.models import Run

        began = time.monotonic()
        mine = Run.objects.filter(pk__in=ids, ended_at=None)
        while self._with_retry(mine.count):
            overdue = timezone.now() - timedelta(seconds=STUCK_AFTER_S)
            late = Q(lease_expires_at__lt=overdue)
            if time.monotonic() - began > NOBODY_S:
                late |= Q(state="queued")
            if stuck := self._with_retry(mine.filter(late).count):
                self.count.stuck += stuck
                break
            time.sleep(0.2)
        self.count.longest_s = max(self.count.longest_s, time.monotonic() - began)

    def _judge(self, ids: set[Any], known: set[int]) -> None:
        from webapp.records.models import Evidence, Run

        runs = self._with_retry(lambda: list(Run.objects.filter(pk__in=ids)))
        self.count.states.update(run.state for run in runs)
        self.count.twice += sum(run.fence > 1 for run in runs)
        stored = set(self._with_retry(lambda: list(Evidence.objects.values_list("pk", flat=True))))
        self.count.evidence_lost += len(known - stored)
        until = time.monotonic() + SALVAGED_WITHIN_S
        while missing := sum(self._with_retry(partial(unread, run)) for run in runs):
            if time.monotonic() > until:
                self.count.evidence_lost += missing
                break
            time.sleep(0.5)
        until = time.monotonic() + GONE_WITHIN_S
        while left := [pid for machine in self.machines for pid in machine.running()]:
            if time.monotonic() > until:
                self.count.left_behind += len(left)
                break
            time.sleep(0.2)

    def _with_retry(self, act: Callable[[], T]) -> T:
        from django.db import InterfaceError, OperationalError, connection

        for _ in range(120):
            try:
                return act()
            except (OperationalError, InterfaceError):
                connection.close()
                time.sleep(0.5)
        raise RuntimeError("the database did not come back")

    def began_twice(self) -> int:
        """Beginnings on the machines beyond one a run, by the mark that each beginning has."""
        from webapp.records.models import Run

        extra = 0
        for machine, target in zip(self.machines, self.targets, strict=True):
            path = machine.tools / "nvidia-smi.began"
            marks = set(path.read_text().split()) if path.exists() else set()
            extra += max(0, len(marks) - Run.objects.filter(target=target).count())
        return extra


def _said_yes(request: urllib.request.Request) -> bool:
    """Whether the server took it: it then leads to the page where the run is. Raises RuntimeError where it
    did not know who asked, which would try nothing."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(request, timeout=20):
            return False
    except urllib.error.HTTPError as error:
        where = error.headers.get("Location", "")
        if error.code in {401, 403} or "sign-in" in where:
            raise RuntimeError(f"asked as nobody: {error.code} {where}") from error
        return error.code == 302
    except OSError:
        return False  # it was gone


def unread(run: Any) -> int:
    """Whole answers in the run's raw output that are no evidence, and answers that a succeeded run lacks."""
    from agents.framing import Frame, FrameReader

    evidence: dict[str, str] = dict(run.evidence.values_list("reader", "sha256"))
    reader = FrameReader(run.nonce)
    frames: list[Frame] = []
    for body in run.chunks.values_list("body", flat=True):
        frames += [event for event in reader.feed(bytes(body)) if isinstance(event, Frame)]
    lost = sum(evidence.get(f.probe_id) != hashlib.sha256(f.raw_stdout).hexdigest() for f in frames)
    missing = len(set(run.names) - set(evidence)) if run.state == "succeeded" else 0
    return lost + missing


def report(count: Count) -> bool:
    trials = sum(count.trials.values())
    print(f"{trials} trials: {dict(count.trials)}")
    print(f"{count.runs} runs, {count.hit} of them at work when a kill came (PostgreSQL's not counted)")
    print(f"the web server took {count.said_yes} of {count.requested} runs that it was asked for when killed")
    print(f"they ended: {dict(count.states)}; the longest wait for an end was {count.longest_s:.1f} s")
    bad = {
        "stuck past lease + 30 s": count.stuck,
        "begun twice": count.twice,
        "evidence lost": count.evidence_lost,
        "processes left on machines": count.left_behind,
    }
    for what, number in bad.items():
        limit = 100 * upper_limit(min(number, trials), trials)
        print(f"{what}: {number} in {trials} trials; at most {limit:.2f} % (95 %)")
    return not any(bad.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=34, help="trials of each kind")
    parser.add_argument("--lease", type=int, default=5, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with stack(PEERPATH_LEASE_S=str(options.lease)) as made:
        import django

        django.setup()
        for name in ("worker-1", "worker-2"):
            made.start_worker(name)
        made.manage("reconciler", "reconcile")
        made.start_web()
        wait_for_port(made.web_port)
        chaos = Chaos(made, options.lease, options.seed)
        order = [kind for kind in KINDS for _ in range(options.each)]
        chaos.random.shuffle(order)
        for number, kind in enumerate(order, 1):
            chaos.trial(kind)
            print(f"{number}/{len(order)} {kind} {chaos.count}", flush=True)
        chaos.count.twice += chaos._with_retry(chaos.began_twice)
        good = report(chaos.count)
        if not good:
            for log in sorted(Path(made.folder).glob("*.log")):
                print(f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
