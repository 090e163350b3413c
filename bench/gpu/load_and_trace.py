"""What the load and the profile say on a real GPU, where no engine is installed.

    python3 bench/gpu/load_and_trace.py

Run with the Python that has torch, on an idle GPU. First steps of a small model, layers of products and a
sampling, are recorded by torch's own profiler and the trace is read as an engine's would be: the step it
tells must be the one that CUDA events time. Then a streaming server stands in for an engine while the GPU
works, and the power it is said to draw must be what nvidia-smi says. About 30 s.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from shipped import all_benchmarks, lines_of

from agents.facts import ReadingKind
from agents.probe import Output
from tests.agents.payloads.engine_server import Engine, serving

STEPS, LAYERS, HIDDEN = 30, 12, 4096
WATTS_APART = 0.15


def recorded(path: Path) -> float:
    """Milliseconds of a step by CUDA events, without the profiler; the trace goes to path."""
    import torch

    weights = [torch.randn(HIDDEN, HIDDEN, device="cuda", dtype=torch.bfloat16) for _ in range(LAYERS)]

    def step(x: Any) -> Any:
        for weight in weights:
            x = torch.nn.functional.relu(x @ weight)
        return x.argmax(-1, keepdim=True).to(x.dtype) + torch.zeros_like(x)

    x = torch.randn(1, HIDDEN, device="cuda", dtype=torch.bfloat16)
    for _ in range(20):
        step(x)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(STEPS):
        step(x)
    end.record()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(STEPS):
            step(x)
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(path))
    return float(begin.elapsed_time(end)) / STEPS


def check_trace(folder: Path) -> bool:
    timed_ms = recorded(folder / "rank0.trace.json.gz")
    out = folder / "profile.jsonl"
    lines_of("bench.engine_profile", "--read", str(folder / "rank0.trace.json.gz"), keep=out)
    profile, times = all_benchmarks()["bench.engine_profile"].parse(Output(out.read_text()))
    print("step by CUDA events, ms:", round(timed_ms, 4))
    print("profile:", profile.value or profile.detail, "·", profile.detail)
    print("kernels:", times.value)
    if profile.kind is not ReadingKind.KNOWN:
        return False
    # The profiler makes a launch-bound step longer; its kernels alone are no longer than the step.
    return bool(profile.value.kernels_ms <= 1.1 * timed_ms and profile.value.step_ms >= 0.9 * timed_ms)


def check_power(folder: Path) -> bool:
    work = "import torch\nx = torch.randn(8192, 8192, device='cuda')\nwhile True: y = x @ x"
    busy = subprocess.Popen([sys.executable, "-c", work])
    seen: list[float] = []
    over = threading.Event()
    threading.Thread(target=_watch, args=(seen, over), daemon=True).start()
    time.sleep(8)
    seen.clear()
    try:
        with serving(Engine(step_s=0.02)) as engine:
            argv = ("--url", engine.url, "--concurrency", "1,8", "--output-tokens", "60")
            lines_of("bench.serving_load", *argv, keep=folder / "load.jsonl")
    finally:
        over.set()
        busy.kill()
        busy.wait()
    serving_reading, telemetry = all_benchmarks()["bench.serving_load"].parse(
        Output((folder / "load.jsonl").read_text())
    )
    watts = sum(seen) / len(seen)
    print("nvidia-smi, W:", round(watts, 1))
    for row in serving_reading.value or ():
        print(row)
    print(telemetry.kind, telemetry.value)
    rows = serving_reading.value or ()
    return all(row.power_w and row.tokens_per_joule and abs(row.power_w - watts) < WATTS_APART * watts for row in rows)


def _watch(seen: list[float], over: threading.Event) -> None:
    query = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
    while not over.is_set():
        output = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        seen.append(sum(float(line) for line in output.split()))
        time.sleep(0.3)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        good = [check_trace(Path(folder)), check_power(Path(folder))]
    print("right" if all(good) else f"not right: trace {good[0]}, power {good[1]}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
