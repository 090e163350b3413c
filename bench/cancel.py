"""How fast a cancelled run's processes are gone from its machine.

    python -m bench.cancel [--times 200]

Each time a run starts a process that ignores SIGTERM, a grandchild in a session of its own, and the hanging
program itself; then the run is cancelled as the page does it. Counted is what of them is alive 5 s later.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from bench.chaos import upper_limit
from bench.stack import Machine, administrator, stack, target_of

WITHIN_S = 5.0
SMI = """#!/bin/sh
( trap '' TERM; sleep 600 ) &
setsid sleep 600 &
: > "$0.began"
exec sleep 600
"""


def machine_with_a_hanging_tool(made: Any, number: int) -> Machine:
    tools = made.folder / f"tools-{number}"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(SMI)
    (tools / "nvidia-smi").chmod(0o755)
    return made.add_machine(tools)  # type: ignore[no-any-return]


def cancelled(machine: Machine, target: Any, user: Any) -> tuple[float, int, str]:
    """Seconds until nothing of it was alive, how many still were after 5 s, and how the run ended."""
    from webapp.records.models import Run
    from webapp.runs import lifecycle

    began = machine.tools / "nvidia-smi.began"
    began.unlink(missing_ok=True)
    run = lifecycle.queue_probes(target.session, target, user, ["guest.topo_p2p_read"])
    while not began.exists():
        time.sleep(0.02)
    requested_at = time.monotonic()
    assert lifecycle.request_cancel(run, user)
    while (left := len(machine.running())) and time.monotonic() - requested_at < WITHIN_S:
        time.sleep(0.02)
    seconds = time.monotonic() - requested_at
    while not (now := Run.objects.get(pk=run.pk)).ended:
        time.sleep(0.02)
    return seconds, left, str(now.state)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    times = parser.parse_args().times
    with stack() as made:
        import django

        django.setup()
        from webapp.records.sessions import session_open

        made.start_worker("worker-1")
        user: Any = administrator()
        session = session_open(owner=user, title="cancel")
        machine = machine_with_a_hanging_tool(made, 0)
        target = target_of(session, machine, user)
        endings = [cancelled(machine, target, user) for _ in range(times)]
    seconds = sorted(s for s, _, _ in endings)
    good = sum(not left for _, left, _ in endings)
    print(f"gone within {WITHIN_S:.0f} s: {good} of {times}; states { ({s for *_, s in endings}) }")
    print(f"median {statistics.median(seconds):.2f} s, longest {seconds[-1]:.2f} s")
    print(f"not gone: at most {100 * upper_limit(times - good, times):.2f} % (95 %)")
    return 0 if good == times else 1


if __name__ == "__main__":
    sys.exit(main())
