"""Our all-reduce figures beside nccl-tests' all_reduce_perf -G, on the GPUs of one machine, P2P on and off.

    python3 bench/gpu/allreduce_vs_nccl_tests.py SOURCE [--build FOLDER] [--only-build] [--keep FOLDER]
        [--gpus N] [--wide]

Run with the Python that has torch. The reference is built against the NCCL of that torch. Every repeat holds
ours and the reference once with P2P and once without, in an order drawn anew, each in fresh processes; ours
is what the payloads run, forked from a process that has loaded torch. In-place figures are compared.
Within means: 3 %, or no further apart than the reference's own repeats.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import shipped

PAYLOADS = shipped.ROOT / "agents" / "payloads"
sys.path[:0] = [str(PAYLOADS / folder) for folder in ("allreduce", "_nccl", "_shared")]

from arms import CONTROL, DEFAULT, SETTINGS  # noqa: E402
from attempt import Attempt  # noqa: E402
from machine import load_torch  # noqa: E402
from runtime import library  # noqa: E402

from agents.parsing import nccl_tests  # noqa: E402

SHARE = 0.03
FEWEST = 5
KIB, MIB, FACTOR = 2**10, 2**20, 4
ARMS = {"P2P on": DEFAULT, "P2P off": CONTROL}
# Ladders of (first, last, launches of a graph of 20). It times on the host: with fewer launches, what each
# costs weighs on small messages (DECISIONS.md, record 11).
LADDERS = ((12 * KIB, 768 * KIB, 100), (4 * MIB, 16 * MIB, 20))
WIDE = ((4 * KIB, MIB, 100), (4 * MIB, 64 * MIB, 20))
REFERENCE_SECONDS = 40


def sizes_of(ladders):
    """Bytes, rising."""
    sizes = []
    for size, last, _ in ladders:
        while size <= last:
            sizes.append(size)
            size *= FACTOR
    return sizes


def main() -> int:
    ask = argparse.ArgumentParser(description="Ours beside nccl-tests -G.")
    ask.add_argument("source", type=Path, help="nccl-tests' source")
    ask.add_argument("--build", type=Path, default=None, help="kept build folder; else a new one")
    ask.add_argument("--only-build", action="store_true")
    ask.add_argument("--keep", type=Path, default=None, help="folder for the raw outputs")
    ask.add_argument("--repeats", type=int, default=FEWEST)
    ask.add_argument("--seconds", type=float, default=95.0, help="no repeat begins that would not fit")
    ask.add_argument("--gpus", type=int, default=0, help="the first so many; default all")
    ask.add_argument("--wide", action="store_true", help="4 KiB to 64 MiB; else 12 KiB to 16 MiB")
    ask.add_argument("--seed", type=int, default=1)
    chosen = ask.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="peerpath.") as folder:
        home = nccl_home(Path(folder))
        build = (chosen.build or Path(folder) / "build").resolve()
        program = built(chosen.source.resolve(), build, home)
        print(f"built after {time.monotonic() - began:.0f} s", flush=True)
        if chosen.only_build:
            return 0
        keep = chosen.keep or Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        times = measured(chosen, program, home, Path(folder), keep, began)
    return report(times)


def nccl_home(folder: Path) -> Path:
    """NCCL as the linker wants it: the headers and library of this torch, by the names it looks for."""
    for entry in map(Path, sys.path):
        package = entry / "nvidia" / "nccl"
        if (package / "include" / "nccl.h").is_file():
            break
    else:
        sys.exit("no nvidia/nccl/include/nccl.h beside this Python's torch")
    home = folder / "nccl"
    (home / "lib").mkdir(parents=True)
    (home / "include").symlink_to(package / "include")
    for name in ("libnccl.so", "libnccl.so.2"):
        (home / "lib" / name).symlink_to(package / "lib" / "libnccl.so.2")
    return home


def built(source: Path, build: Path, home: Path) -> Path:
    program = build / "all_reduce_perf"
    if program.exists():
        return program
    build.mkdir(parents=True, exist_ok=True)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists():
        sys.exit("nvcc was not found: it is needed to build nccl-tests")
    words = {"MPI": "0", "BUILDDIR": build, "NCCL_HOME": home, "NVCC_GENCODE": architecture()}
    words["CUDA_HOME"] = Path(nvcc).resolve().parent.parent
    named = [f"{name}={value}" for name, value in words.items()]
    command = ["make", "-C", str(source / "src"), f"-j{os.cpu_count()}", *named, str(program)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or not program.exists():
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}")
    return program


def architecture() -> str:
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    output = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout
    number = output.split()[0].replace(".", "")
    return f"-gencode=arch=compute_{number},code=sm_{number}"


def measured(chosen, program, home, folder, keep, began):
    """µs by (who, arm, bytes), one entry a repeat."""
    load_torch()  # starts nothing on any GPU, so that the ranks can be forked from here
    gpus = min(chosen.gpus or len(gpu_list()), len(gpu_list()))
    ladders = WIDE if chosen.wide else LADDERS
    options = SimpleNamespace(folder=str(folder), device="cuda", ranks=gpus, dtype="bf16")
    options.ladders, options.sizes = ladders, sizes_of(ladders)
    options.row_seconds, options.stall_seconds, options.all_ways = 0.1, 30.0, False
    stay_open()
    print(f"{gpus} of {len(gpu_list())} GPUs, NCCL {library('libnccl')._name}", flush=True)
    times, draw = defaultdict(list), random.Random(chosen.seed)
    longest = 0.0
    for repeat in range(chosen.repeats):
        start = time.monotonic()
        if repeat and start - began + longest * 1.1 > chosen.seconds:
            print(f"only {repeat} repeats fit into {chosen.seconds:g} s")
            break
        turns = [(who, arm) for who in (ours, reference) for arm in ARMS]
        for who, arm in draw.sample(turns, len(turns)):
            raw = keep / f"{who.__name__}.{ARMS[arm]}.{repeat}.txt"
            for size, us in who(options, program, home, ARMS[arm], repeat, raw).items():
                times[who.__name__, arm, size].append(us)
        longest = max(longest, time.monotonic() - start)
        print(f"repeat {repeat + 1} took {time.monotonic() - start:.1f} s", flush=True)
    return times


def gpu_list():
    output = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return output.splitlines()


def stay_open():
    """The processes that watch end everything when standard input closes: it stays open here."""
    read, _ = os.pipe()
    os.dup2(read, 0)


def ours(options, _program, _home, arm, repeat, raw):
    """Its lines go to standard output, which is a file meanwhile."""
    sys.stdout.flush()
    screen = os.dup(1)
    with raw.open("wb") as file:
        os.dup2(file.fileno(), 1)
        try:
            label = {"arm": arm, "block": repeat + 1}
            attempt = Attempt(options, label, SETTINGS[arm]).run(time.monotonic() + 60)
        finally:
            os.dup2(screen, 1)
            os.close(screen)
    if attempt.outcome != "right":
        sys.exit(f"ours, {arm}: {attempt.outcome}, {attempt.why}\n{raw.read_text()[-2000:]}")
    rows = [row for row in map(shipped.json.loads, raw.read_text().splitlines()) if "time_us" in row]
    print(f"  ours {arm}: {attempt.transport}", flush=True)
    return {row["size_bytes"]: row["time_us"] for row in rows if row["method"] == "graph"}


def reference(options, program, home, arm, _repeat, raw):
    environment = {**os.environ, **SETTINGS[arm], "LD_LIBRARY_PATH": searched(home)}
    text = ""
    for first, last, count in options.ladders:
        command = [str(program), "-g", str(options.ranks), "-b", str(first), "-e", str(last)]
        command += ["-f", str(FACTOR), "-d", "bfloat16", "-G", "20", "-n", str(count), "-w", "5"]
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=REFERENCE_SECONDS,
        )
        text += f"$ {' '.join(command)}\n{done.stdout}"
        if done.returncode:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout[-2000:]}")
    raw.write_text(text)
    times = {}
    for table in nccl_tests.parse(text):
        for row in table.result().rows:
            if row.in_place:
                times[row.size_bytes] = row.time_us
                if row.wrong:
                    sys.exit(f"nccl-tests counts {row.wrong} wrong values at {row.size_bytes} bytes")
    return times


def searched(home) -> str:
    """Where libraries are looked for: NCCL as torch has it before any other."""
    here = os.environ.get("LD_LIBRARY_PATH", "")
    return ":".join(filter(None, [f"{home}/lib", "/usr/local/cuda/lib64", here]))


def report(times) -> int:
    """Prints the figures; 1 when a size is further apart, or was not measured often enough."""
    bad = int(not times)
    for arm in ARMS:
        print(f"\n{arm}\n{'bytes':>10} {'ours µs':>10} {'spread':>7} {'nccl-tests':>10} {'spread':>7} ratio")
        for size in sorted({size for _, name, size in times if name == arm}):
            mine, theirs = times["ours", arm, size], times["reference", arm, size]
            if not (mine and theirs):
                print(f"{size:>10} {len(mine)} and {len(theirs)} repeats")
                bad += 1
                continue
            ratio = median(mine) / median(theirs)
            allowed = max(SHARE, spread(theirs))
            within = abs(ratio - 1) <= allowed
            bad += not within or min(len(mine), len(theirs)) < FEWEST
            word = f"within {allowed:.1%}" if within else f"NOT within {allowed:.1%}"
            word += f" ({len(mine)} and {len(theirs)} repeats)"
            print(
                f"{size:>10} {median(mine):>10.2f} {spread_text(mine):>7} {median(theirs):>10.2f} "
                f"{spread_text(theirs):>7} {ratio:.3f} {word}"
            )
    first = min((size for _, _, size in times), default=0)
    small = [times["ours", arm, first] for arm in ARMS]
    if all(small):
        apart = max(small[0]) < min(small[1])
        bad += not apart
        word = "told apart" if apart else "NOT told apart"
        print(f"\nP2P on and off at {first} bytes: {word}, {max(small[0]):.2f} against {min(small[1]):.2f} µs")
    print("all within" if not bad else f"{bad} of the lines above are not as they should be")
    return 1 if bad else 0


def spread(values) -> float:
    return max(values) / min(values) - 1


def spread_text(values) -> str:
    """The spread between repeats, which one repeat cannot show."""
    return f"{spread(values):.1%}" if len(values) > 1 else "–"


if __name__ == "__main__":
    sys.exit(main())
