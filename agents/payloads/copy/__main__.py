"""Times copies inside a GPU, between GPUs and over the host: on the device and for a caller.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else. It prints each row as a JSON line at once,
first a header, last {"end": true}; between them telemetry.

The first process only watches. Every part has its own process, because peer access is a state of a whole process, and
because a part that fails, crashes or hangs then costs only its own rows and becomes a note. All of them are killed at
--limit, when standard input closes, or on a signal.
"""

import argparse

from copies import Bench, run_on_cpu
from parts import Parts, add_only, chosen_of
from processes import ENOUGH, GO_ON
from sizes import KIB, sizes_of
from startup import add_options, leave

LADDER = [size * KIB for size in (12, 48, 192, 768, 4096, 16384, 65536)]

OPTIONS = (
    ("--sizes", str, "", "bytes or 12K,4M (1024); default 12K to 64M"),
    ("--hidden", int, 0, "adds hidden x batch x bytes"),
    ("--batch", str, "1", "with --hidden: tokens in a step, as in 1,64"),
    ("--bytes", int, 2, "with --hidden: bytes of an activation"),
    ("--row-seconds", float, 0.12, "time for one row"),
    ("--pairs", str, "auto", "auto, first, all, or 0-1,1-0"),
)


def part(measure):
    def of_bench(torch, chosen, until):
        bench = Bench(torch, chosen, until)
        measure(bench)
        return GO_ON if bench.whole else ENOUGH

    return of_bench


PARTS = {  # the part most likely to hang is the last
    "inside": ("copies inside one GPU", part(Bench.inside)),
    "staged": ("copies by hand over the host", part(Bench.staged)),
    "no_peer": ("copies without peer access", part(lambda bench: bench.peer(False))),
    "peer": ("copies with peer access", part(lambda bench: bench.peer(True))),
}


def options(argv):
    ask = argparse.ArgumentParser(description="Times copies inside and between GPUs.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--quick", action="store_true", help="between GPUs the device's time of one direction alone")
    add_only(ask, PARTS)
    add_options(ask, limit=150.0)
    chosen = ask.parse_args(argv)
    chosen.sizes = sizes_of(chosen.sizes, LADDER, chosen.hidden, chosen.batch, chosen.bytes)
    chosen.parts = chosen_of(chosen.only, PARTS)
    return chosen


if __name__ == "__main__":
    leave(options, Parts("peerpath.copy/1", PARTS, run_on_cpu).run)
