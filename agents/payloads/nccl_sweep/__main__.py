"""Compares NCCL's settings: checked and timed all-reduces at a model's message sizes.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. An arm is one choice of settings; the
baseline sets nothing. NCCL reads settings once, so every try gets fresh processes, one per GPU. Each block tries
every arm once, in a newly drawn order (--seed). An arm that hangs, fails or sums wrong drops out, and the others go
on. A block that does not fit into --limit does not begin.

It prints JSON lines: a header, the plan, a row for each size, for each try its outcome and the transport in NCCL's
log, a line after each whole block, last {"end": true}. The first process only watches; it loads torch once for all
tries and never touches a GPU. Everything is killed at --limit, when standard input closes, or on a signal.
"""

import os
import random
import time

from attempt import Attempt
from lines import Refusal, say
from machine import load_torch
from nccl import version_of
from processes import Stopped
from program import find_ranks, leave, message_sizes, option_parser
from runtime import library
from settings import BASELINE, NO_P2P, SWEPT, arms_of, named_arms
from sizes import KIB

SCHEMA = "peerpath.nccl_sweep/1"
SIZES = [12 * KIB, 192 * KIB, 768 * KIB]  # 1, 16 and 64 tokens of a hidden size of 6144
# A long prompt sends this size and a step does not: it shows the price of a gain at small sizes.
PREFILL = 4 * KIB**2
FAULTS = ("slow", "wrong", "hang")
# NVIDIA's container images set it as a label; NCCL does not read it.
LABELS = {"NCCL_VERSION"}
SLACK = 1.3  # a block may take this factor longer than the one before it


def options(argv):
    ask = option_parser("Tries NCCL's settings against each other.", 280.0, 0.05, 15.0)
    ask.add_argument("--weights", default="", help="how often each size comes, as in 8,1; else alike")
    ask.add_argument("--repeats", type=int, default=5, help="blocks, each with every arm once")
    ask.add_argument("--arms", default="", help="only these, with the baseline")
    ask.add_argument("--no-p2p", action="store_true", help="in every arm, as where there is none")
    ask.add_argument("--seed", type=int, default=None, help="of the order; else drawn, and said")
    ask.add_argument("--simulate-fault", default="", help="slow:ARM,wrong:ARM,hang:ARM")
    chosen = ask.parse_args(argv)
    chosen.all_ways, named = False, bool(chosen.sizes)
    chosen.sizes = message_sizes(chosen, [] if chosen.hidden else SIZES)
    weights = weights_of(chosen.weights, len(chosen.sizes))
    if not named and chosen.sizes[-1] < PREFILL:
        chosen.sizes, weights = [*chosen.sizes, PREFILL], [*weights, 0.0]
    chosen.weights = weights
    chosen.faults = faults_of(chosen.simulate_fault)
    chosen.arms = named_arms(chosen.arms)
    chosen.always = NO_P2P if chosen.no_p2p else {}
    if chosen.seed is None:
        chosen.seed = int.from_bytes(os.urandom(4), "big")
    return chosen


def weights_of(named, count):
    try:
        weights = [float(word) for word in named.split(",")] if named else [1.0] * count
    except ValueError:
        weights = []
    if len(weights) != count or min(weights, default=-1) < 0 or not 0 < sum(weights) < 1e12:
        fix = f"give {count} numbers, one a size in rising order"
        raise Refusal("the weights do not fit the sizes", fix)
    return [weight / sum(weights) for weight in weights]


def faults_of(named):
    """{arm: fault}."""
    pairs = [word.split(":") for word in named.split(",") if word]
    if any(len(pair) != 2 or pair[0] not in FAULTS for pair in pairs):
        raise Refusal("no such fault", "give --simulate-fault slow:algo_ring")
    return {arm: fault for fault, arm in pairs}


def measure(chosen, argv, deadline):
    code = find_ranks(chosen, argv, SCHEMA, deadline)
    if code is not None:
        return code
    load_torch()  # the look above found torch, so the import works here
    clear_swept()
    if chosen.always:
        words = " ".join(f"{name}={value}" for name, value in chosen.always.items())
        say(note=f"set in every arm: {words}")
    version = version_of(library("libnccl")) if chosen.device == "cuda" else ""
    start = time.monotonic()
    # This try does not count: it wakes the GPUs, fills the caches, and shows NCCL's own transport.
    first = tried(chosen, {BASELINE: {}}, BASELINE, 0, deadline)
    if first.outcome != "right":
        say(verdict="unusable", why=f"without any setting: {first.outcome}, {first.why}")
        return 0
    arms = arms_of(version, first.transport, chosen.arms, chosen.no_p2p)
    plan = {"arms": arms, "sizes": chosen.sizes, "weights": chosen.weights, "seed": chosen.seed}
    say(plan={**plan, "repeats": chosen.repeats, "ranks": chosen.ranks, "nccl": version})
    sweep(chosen, arms, (time.monotonic() - start) * len(arms), deadline)
    return 0


def clear_swept():
    """Removes the arms' variables from the environment, so that the baseline is NCCL's own choice. Other settings
    stay: an administrator may have good reasons for them, such as no NVLink multicast."""
    inherited = sorted(name for name in os.environ if name.startswith("NCCL_"))
    swept = [name for name in inherited if name in SWEPT]
    for name in swept:
        del os.environ[name]
    if swept:
        say(note=f"left out, so that the baseline is NCCL's own choice: {', '.join(swept)}")
    if others := [f"{name}={os.environ[name]}" for name in inherited if name not in SWEPT | LABELS]:
        say(note=f"kept in every arm: {', '.join(others)}")


def sweep(chosen, arms, took, deadline):
    """took: the expected seconds of the first block."""
    draw, left = random.Random(chosen.seed), list(arms)
    for block in range(1, chosen.repeats + 1):
        if time.monotonic() + took * SLACK > deadline:
            say(note=f"{block - 1} of {chosen.repeats} repeats fit in the time", lost=True)
            return
        start = time.monotonic()
        for name in draw.sample(left, len(left)):
            if tried(chosen, arms, name, block, deadline).outcome != "right":
                left.remove(name)
        took = time.monotonic() - start
        say(block=block, whole=True, seconds=round(took, 1))
        if BASELINE not in left:
            say(verdict="unusable", why="the baseline is not right every time")
            return


def tried(chosen, arms, name, block, deadline):
    label = {"arm": name, "block": block}
    settings = {**chosen.always, **arms[name]}
    attempt = Attempt(chosen, label, settings, chosen.faults.get(name, "")).run(deadline)
    if time.monotonic() >= deadline:
        raise Stopped("the time limit was reached")
    say(**attempt.line())
    return attempt


if __name__ == "__main__":
    leave(options, measure)
