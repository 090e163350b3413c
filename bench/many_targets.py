"""What Peerpath adds to plain ssh when it asks many machines everything, and what a dead one costs.

    python -m bench.many_targets [--machines 64] [--at-once 16]

All machines are sshd processes here, so the questions themselves share this machine's cores: plain ssh with
the same script and as many at once is measured in the same run, before and after. Then one machine that
accepts connections and never answers is added, and then a second worker.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.stack import Machine, Stack, administrator, stack, target_of

MOST_BEYOND_S = 5.0


def plain_ssh(machines: list[Machine], at_once: int) -> float:
    """Seconds for the same collector over OpenSSH's own client, one connection a machine."""
    from agents.collector import build_script
    from agents.facts import View
    from agents.probes import probes_for

    script = build_script(probes_for(View.GUEST), role=View.GUEST, nonce="0" * 16).encode()

    def ask(machine: Machine) -> None:
        known = machine.folder / f"known-{machine.port}"
        key = " ".join((machine.folder / "host_key.pub").read_text().split()[:2])
        known.write_text(f"[127.0.0.1]:{machine.port} {key}\n")
        options = ["-F", "none", "-i", str(machine.folder / "user_key"), "-p", str(machine.port)]
        answer = subprocess.run(
            ["ssh", *options, "-o", f"UserKnownHostsFile={known}", "127.0.0.1", "sh -s"],
            input=script,
            capture_output=True,
            check=True,
        )
        assert b" end " in answer.stdout

    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(ask, machines))
    return time.monotonic() - began


def ours(session: Any, targets: list[Any], user: Any) -> tuple[float, list[float]]:
    """Seconds until the last machine that can answer has, and each one's from its start to its end."""
    from webapp.triage import runs
    from webapp.triage.models import Run

    began = time.monotonic()
    made = [runs.queue_probes(session, target, user).pk for target in targets]
    while Run.objects.filter(pk__in=made, ended_at=None).exists():
        time.sleep(0.1)
    seconds = time.monotonic() - began
    done = Run.objects.filter(pk__in=made)
    assert all(run.state in ("succeeded", "partly") for run in done), {r.problem for r in done}
    times: list[Any] = list(done.values_list("started_at", "ended_at"))
    return seconds, [(ended - started).total_seconds() for started, ended in times]


def with_a_dead_one(session: Any, targets: list[Any], user: Any, folder: Any) -> float:
    """As `ours`, with a machine first in the queue that accepts connections and says nothing."""
    from webapp.triage import runs

    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = target_of(session, Machine(folder, silent.getsockname()[1], folder), user)
        runs.queue_probes(session, dead, user)
        return ours(session, targets, user)[0]


def started(made: Stack, name: str) -> None:
    """Waits until the worker works: importing it takes longer than a run."""
    made.start_worker(name)
    time.sleep(10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=16)
    given = parser.parse_args()
    with stack(PEERPATH_RUNS_PER_SESSION="1000") as made:
        import django

        django.setup()
        from webapp.triage.sessions import session_open

        user: Any = administrator()
        session = session_open(owner=user, title="many")
        tools = made.folder / "tools"
        tools.mkdir()
        machines = [made.add_machine(tools) for _ in range(given.machines)]
        targets = [target_of(session, machine, user) for machine in machines]
        started(made, "worker-1")
        before = plain_ssh(machines, given.at_once)
        one, each = ours(session, targets, user)
        after = plain_ssh(machines, given.at_once)
        dead = with_a_dead_one(session, targets, user, made.folder)
        started(made, "worker-2")
        two, _ = ours(session, targets, user)
    ssh = statistics.mean((before, after))
    print(f"{given.machines} machines, {given.at_once} at once")
    print(f"plain ssh {before:.1f} s before and {after:.1f} s after; Peerpath {one:.1f} s")
    print(
        f"beyond plain ssh: {one - ssh:+.1f} s; a machine's median {statistics.median(each):.1f} s"
    )
    print(f"with a dead machine: {dead - one:+.1f} s for the others; two workers: {two:.1f} s")
    return 0 if one - ssh <= MOST_BEYOND_S else 1


if __name__ == "__main__":
    sys.exit(main())
