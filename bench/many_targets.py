"""What Peerpath adds to plain ssh when it asks many machines everything, and what a dead one costs.

    python -m bench.many_targets [--machines 64] [--at-once 16] [--latency SECONDS]

All machines are sshd processes here, so the questions themselves share this machine's cores: plain ssh with
the same script and as many at once is measured in the same run, before and after. Then one machine that
accepts connections and never answers is added, and then a second worker.

--latency: each machine says, after so many seconds, what one of them had said to the whole set before.
That takes its side next to no CPU, so that two workers can be compared with one.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.stack import Machine, Stack, administrator, stack, target_of

MOST_BEYOND_S = 5.0
NOBODYS = "0" * 32  # the nonce of the answer that is said again
# Only the collector's own channel; what else is asked for is done as asked.
SAYS_AGAIN = """#!/bin/sh
case $SSH_ORIGINAL_COMMAND in "exec sh -s -- "*) exec sh -c "$SSH_ORIGINAL_COMMAND" ;; esac
nonce=$(sed -n '/^nonce=/{{s/^nonce=\\([0-9a-f]*\\).*/\\1/;p;q}}')
sleep {latency_s}
exec sed "s/={nobodys}=/=$nonce=/" {answer}
"""


def collector() -> bytes:
    from agents.collector import build_script
    from agents.facts import View
    from agents.probes import probes_for

    return build_script(probes_for(View.GUEST), role=View.GUEST, nonce=NOBODYS).encode()


def plain_ssh(machines: list[Machine], at_once: int) -> tuple[float, bytes]:
    """Seconds for the same collector over OpenSSH's own client, one connection a machine; an answer."""
    script = collector()

    def ask(machine: Machine) -> bytes:
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
        return answer.stdout

    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as threads:
        answers = list(threads.map(ask, machines))
    return time.monotonic() - began, answers[0]


def says_again(made: Stack, latency_s: float) -> Path:
    """The program that answers in place of a machine's sh."""
    answer, program = made.folder / "answer", made.folder / "says-again"
    answer.write_bytes(plain_ssh([made.add_machine(made.folder)], 1)[1])
    program.write_text(SAYS_AGAIN.format(latency_s=latency_s, nobodys=NOBODYS, answer=answer))
    program.chmod(0o755)
    return program


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


def cpu_s(made: Stack, name: str) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{made.started[name].pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.0)
    given = parser.parse_args()
    with stack(PEERPATH_RUNS_PER_SESSION="1000") as made:
        import django

        django.setup()
        from webapp.triage.sessions import session_open

        user: Any = administrator()
        session = session_open(owner=user, title="many")
        tools = made.folder / "tools"
        tools.mkdir()
        instead = says_again(made, given.latency) if given.latency else None
        machines = [made.add_machine(tools, instead) for _ in range(given.machines)]
        targets = [target_of(session, machine, user) for machine in machines]
        started(made, "worker-1")
        before, _ = plain_ssh(machines, given.at_once)
        used = cpu_s(made, "worker-1")
        one, each = ours(session, targets, user)
        used = cpu_s(made, "worker-1") - used
        after, _ = plain_ssh(machines, given.at_once)
        dead = with_a_dead_one(session, targets, user, made.folder)
        started(made, "worker-2")
        two, _ = ours(session, targets, user)
    ssh = statistics.mean((before, after))
    print(f"{given.machines} machines, {given.at_once} at once; load of this machine {os.getloadavg()[0]:.1f}")
    print(f"plain ssh {before:.1f} s before and {after:.1f} s after; Peerpath {one:.1f} s")
    print(
        f"beyond plain ssh: {one - ssh:+.1f} s; a machine's median {statistics.median(each):.1f} s;"
        f" the worker's CPU {used / given.machines:.2f} s a machine"
    )
    print(
        f"with a dead machine: {dead - one:+.1f} s for the others;"
        f" two workers: {two:.1f} s, {one / two:.2f} times as fast"
    )
    return 0 if one - ssh <= MOST_BEYOND_S else 1


if __name__ == "__main__":
    sys.exit(main())
