"""Times copies of one pair of GPUs alone, and beside the copies of all other GPUs.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. All copies of a pattern are queued while
the device is held; they start together, and the device times them until the last one is done. One copy alone is
measured before and after the patterns of its size. It prints each row as a JSON line at once, first a header, last
{"end": true}; between them telemetry.

The first process only watches. Every part has its own process; a part that fails, crashes or hangs costs only its own
rows. All are killed at --limit, when standard input closes, or on a signal.
"""

import argparse

from flows import Contention
from in_memory import run_on_cpu
from parts import Parts, add_only, chosen_of
from processes import ENOUGH, GO_ON
from sizes import KIB, sizes_of
from startup import add_options, leave

SIZES = [48 * KIB, KIB**2, 16 * KIB**2]


def host(torch, chosen, until):
    bench = Contention(torch, chosen, until)
    bench.host()
    return GO_ON if bench.count > 1 else ENOUGH


def peers(access):
    def measure(torch, chosen, until):
        Contention(torch, chosen, until).peers(access)
        return GO_ON

    return measure


PARTS = {  # the part most likely to hang is the last
    "host": ("copies from and to the host at once", host),
    "no_peer": ("copies at once without peer access", peers(False)),
    "peer": ("copies at once with peer access", peers(True)),
}


def options(argv):
    ask = argparse.ArgumentParser(description="Times copies beside other copies.")
    ask.add_argument("--sizes", default="", help="bytes or 12K,4M (1024); default 48K,1M,16M")
    ask.add_argument("--row-seconds", type=float, default=0.2, help="time for one row")
    ask.add_argument("--gpus", type=int, default=0, help="the first so many; default all")
    add_only(ask, PARTS)
    add_options(ask, limit=120.0)
    chosen = ask.parse_args(argv)
    chosen.sizes = sizes_of(chosen.sizes, SIZES)
    chosen.parts = chosen_of(chosen.only, PARTS)
    return chosen


if __name__ == "__main__":
    leave(options, Parts("peerpath.contention/1", PARTS, run_on_cpu).run)
