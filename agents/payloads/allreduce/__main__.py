"""Sums values over all GPUs with NCCL, checks every sum, and times it with and without P2P.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. It calls NCCL directly, with one process
per GPU. Each arm (without P2P as the control, with P2P, and forced where NCCL does not take it by itself) gets fresh
processes, because NCCL chooses its transports once. It prints JSON lines: a header, the rows, for each arm its
outcome and the transport in NCCL's log, a verdict, last {"end": true}.

The first process only watches: it kills an arm without progress, and that is the arm's result. Everything is killed
at --limit, when standard input closes, or on a signal.
"""

import os
import time

from arms import CONTROL, DEFAULT, FORCED, arm, verdict
from lines import say
from processes import Stopped
from program import find_ranks, leave, message_sizes, option_parser
from sizes import KIB

SCHEMA = "peerpath.allreduce/1"
LADDER = [4 * KIB * 4**step for step in range(8)]  # 4 KiB to 64 MiB
FAULTS = ("wrong", "hang", "control")


def options(argv):
    ask = option_parser("Checks and times all-reduces over all GPUs.", 280.0, 0.25, 30.0)
    ask.add_argument("--simulate-fault", choices=FAULTS, default="", help="to see that it is found")
    ask.add_argument("--set", default="", help="NCCL_NAME=VALUE,… for all arms, which say it")
    chosen = ask.parse_args(argv)
    for word in filter(None, chosen.set.split(",")):
        name, equals, value = word.partition("=")
        if not (equals and name.startswith("NCCL_")):
            ask.error(f"--set takes NCCL_NAME=VALUE, not {word!r}")
        os.environ[name] = value
    chosen.all_ways = True  # in a graph, queued, and with a wait for each one
    chosen.sizes = message_sizes(chosen, LADDER)
    return chosen


def measure(chosen, argv, deadline):
    code = find_ranks(chosen, argv, SCHEMA, deadline)
    if code is not None:
        return code
    arms = {}
    for name in (CONTROL, DEFAULT, FORCED):
        if name == FORCED and not takes_no_p2p(chosen, arms[DEFAULT]):
            break
        arms[name] = arm(chosen, name).run(deadline)
        if time.monotonic() >= deadline:
            raise Stopped("the time limit was reached")
        say(**arms[name].line())
    word, why = verdict(arms)
    say(verdict=word, why=why)
    return 0


def takes_no_p2p(chosen, attempt):
    cuda = chosen.device == "cuda"
    return cuda and attempt.outcome == "right" and attempt.transport[:3] in {"SHM", "NET"}


if __name__ == "__main__":
    leave(options, measure)
