"""What the programs do when things go wrong on real GPUs, and that nothing stays there.

    python3 bench/gpu/failures.py [--seed 1] [--kills 10] [--seconds 110]

Run with the Python that has torch, on idle GPUs. Programs killed at random moments in three ways; a hang of
NCCL, provoked; a GPU that another process holds; GPUs too full to measure. After each, no process of it may
be left, nvidia-smi must list none, and the GPUs must hold what they held before. A kill that would not fit
into --seconds, or into the time that the rest needs, is not begun, and counts as bad. The folder of a program
that was killed hard is removed by what ends every run (agents/sweep.sh), at the end of all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from shipped import ROOT, all_benchmarks

PROGRAMS = {
    "bench.copy": ("--row-seconds", "0.1"),
    "bench.contention": (),
    "bench.delivery": (),
    "bench.memory": all_benchmarks()["bench.memory"].argv,
    "bench.launch": all_benchmarks()["bench.launch"].argv,
    "bench.allreduce": ("--row-seconds", "0.1"),
}
MARK = f"failures{os.getpid()}"
WAYS = ("killed", "terminated", "input closed")
LEFT_MIB = 64
GONE_SECONDS = 15
# Seconds after which a program is killed: while it loads, and while it measures.
FIRST, LAST = 0.5, 7.5
OTHERS_SECONDS = 45  # what the hang and the full GPUs take (two H200)
FREE_MIB = 1200  # left by what fills the GPUs: a process of CUDA fits, 64 MiB of sums do not

Line = dict[str, Any]

FILLER = f"""
import sys, torch
kept = []
for gpu in range(torch.cuda.device_count()):
    torch.cuda.set_device(gpu)
    free = torch.cuda.mem_get_info()[0]
    kept.append(torch.empty(max(0, free - {FREE_MIB} * 2**20), dtype=torch.uint8, device="cuda"))
torch.cuda.synchronize()
print("full", flush=True)
sys.stdin.read()
"""


def smi(query: str) -> list[list[str]]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in output.splitlines() if line.strip()]


def used_mib() -> dict[str, int]:
    return {gpu: int(mib) for gpu, mib in smi("--query-gpu=index,memory.used")}


def files() -> set[Path]:
    """NCCL's shared memory, and the programs' folders: removed by the wrapper that ships them."""
    return {*Path("/dev/shm").iterdir(), *Path(tempfile.gettempdir()).glob("peerpath.*")}


def listed() -> set[str]:
    """Processes that nvidia-smi lists; in a container it may see none."""
    return {row[0] for row in smi("--query-compute-apps=pid,used_memory") if row[0].isdigit()}


def descendants(pid: int) -> set[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return set()
    children = {int(word) for word in text.split()}
    return children.union(*(descendants(child) for child in children))


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


class Checker:
    """Counts what went wrong."""

    def __init__(self) -> None:
        self.before, self.listed, self.bad = used_mib(), listed(), 0
        self.files = files()

    def say(self, what: str, problems: list[str]) -> None:
        self.bad += bool(problems)
        print(f"{'BAD ' if problems else 'ok  '} {what} {'; '.join(problems)}", flush=True)

    def left(self, pids: set[int]) -> list[str]:
        """What is still there; drivers take a moment to free what a killed process held."""
        until = time.monotonic() + GONE_SECONDS
        while True:
            problems = []
            if alive(pids):
                problems.append(f"processes left: {sorted(alive(pids))}")
            if listed() - self.listed:
                problems.append(f"nvidia-smi lists {sorted(listed() - self.listed)}")
            for gpu, mib in used_mib().items():
                if mib > self.before[gpu] + LEFT_MIB:
                    problems.append(f"GPU {gpu} holds {mib - self.before[gpu]} MiB more than before")
            if not problems or time.monotonic() > until:
                return problems
            time.sleep(0.3)


class Program:
    """A program as it is shipped. Its standard input stays open until it is closed on purpose."""

    def __init__(self, folder: Path, name: str, *argv: str) -> None:
        program = folder / name
        program.write_bytes(all_benchmarks()[name].payload_source())
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            command = [sys.executable, str(program), *argv]
            marked = {**os.environ, "PEERPATH_RUN": MARK}
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, env=marked)

    def close_input(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def finish(self, seconds: float) -> tuple[list[Line], str]:
        """Its lines and its standard error; ended hard when it takes longer."""
        late = ""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            late = " it had to be killed"
        rows = [line for line in self.out.read_text().splitlines() if line.startswith("{")]
        return [json.loads(line) for line in rows], self.err.read_text().strip() + late


def killed(checker: Checker, folder: Path, name: str, way: str, after: float) -> None:
    program = Program(folder, name, *PROGRAMS[name])
    time.sleep(after)
    pids = descendants(program.process.pid) | {program.process.pid}
    ended = program.process.poll() is not None
    if way == "killed":
        program.process.kill()
    elif way == "terminated":
        program.process.send_signal(signal.SIGTERM)
    else:
        program.close_input()
    lines, err = program.finish(20)
    problems = [f"stderr: {err[:200]}"] if err else []
    if way != "killed" and not ended and not (lines and "stopped" in lines[-1]):
        problems.append(f"its last line is {lines[-1] if lines else None}")
    rows = sum("time_us" in line or "verdict" in line for line in lines)
    what = f"{name} {way} after {after:.1f} s, {len(pids)} processes, {rows} rows"
    checker.say(what, problems + checker.left(pids))


def hung(checker: Checker, folder: Path) -> None:
    """One rank stays away from a sum, so that the others wait in NCCL's kernel for ever."""
    argv = ("--sizes", "64K,4M", "--row-seconds", "0.02", "--stall-seconds", "5")
    program = Program(folder, "bench.allreduce", *argv, "--simulate-fault", "hang")
    lines, err = program.finish(60)
    outcomes = {line["arm"]: line["outcome"] for line in lines if "outcome" in line}
    verdicts = [line["verdict"] for line in lines if "verdict" in line]
    problems = [f"stderr: {err[:200]}"] if err else []
    if outcomes.get("no_p2p") != "right" or outcomes.get("default") != "hang" or verdicts != ["hang"]:
        problems.append(f"outcomes {outcomes}, verdict {verdicts}")
    checker.say("a hang in NCCL: the control is right, the arm hangs", problems + checker.left(set()))


def full(checker: Checker, folder: Path) -> None:
    """Refused while others hold the GPUs; told to go on all the same, it says that nothing fits."""
    filler = subprocess.Popen([sys.executable, "-c", FILLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert filler.stdout
    if filler.stdout.readline().strip() != "full":
        checker.say("filling the GPUs", ["the filler failed"])
        return
    holding = used_mib()
    for name in ("bench.copy", "bench.allreduce"):
        lines, err = Program(folder, name).finish(30)
        problems = [f"stderr: {err[:200]}"] if err else []
        if not any("busy" in line.get("error", "") for line in lines):
            problems.append(f"it said {lines[-1:]}")
        why = next((line["error"] for line in lines if "error" in line), "")
        checker.say(f"{name} on busy GPUs: refused, {why[:90]}", problems)
    argv = ("--force", "--sizes", "64M", "--row-seconds", "0.02", "--stall-seconds", "20")
    lines, err = Program(folder, "bench.allreduce", *argv).finish(90)
    outcomes = [line for line in lines if "outcome" in line or "verdict" in line]
    problems = [f"stderr: {err[:200]}"] if err else []
    if not outcomes or any(line.get("outcome") in {"right", "wrong", "hang"} for line in outcomes):
        problems.append(f"it said {[line.get('outcome') or line.get('verdict') for line in outcomes]}")
    why = next((line["note"] for line in lines if line.get("lost")), "")
    more = [gpu for gpu, mib in used_mib().items() if mib > holding[gpu] + LEFT_MIB]
    problems += [f"GPUs {more} hold more than with the filler alone"] if more else []
    checker.say(f"all-reduce on full GPUs: nothing measured, {why[:90]}", problems)
    assert filler.stdin
    filler.stdin.close()
    filler.wait(30)
    checker.say("the filler is gone", checker.left({filler.pid}))


def swept(checker: Checker) -> None:
    """What ends a run removes what it left; the rest is bad."""
    before = files() - checker.files
    subprocess.run(["sh", str(ROOT / "agents" / "sweep.sh"), MARK], check=True)
    left = sorted(map(str, files() - checker.files))
    checker.say(f"{len(before)} files of what was killed hard, removed", left)


def main() -> int:
    ask = argparse.ArgumentParser(description="Kills, hangs and full GPUs.")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--kills", type=int, default=10)
    ask.add_argument("--seconds", type=float, default=110.0)
    chosen = ask.parse_args()
    began, draw, checker = time.monotonic(), random.Random(chosen.seed), Checker()
    print(f"before: {checker.before} MiB used, processes {sorted(checker.listed)}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(chosen.kills):
            program, way = list(PROGRAMS)[number % len(PROGRAMS)], WAYS[number % len(WAYS)]
            after = draw.uniform(FIRST, LAST)
            if time.monotonic() - began + after + OTHERS_SECONDS > chosen.seconds:
                checker.say(f"{number} of {chosen.kills} kills", ["no time for the others"])
                break
            killed(checker, folder, program, way, after)
        hung(checker, folder)
        full(checker, folder)
    swept(checker)
    print(f"{checker.bad} bad, {time.monotonic() - began:.0f} s")
    return 1 if checker.bad else 0


if __name__ == "__main__":
    sys.exit(main())
