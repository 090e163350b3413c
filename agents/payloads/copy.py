"""Times copies inside a GPU, between GPUs, over the host: as the device and as a caller sees them.

Runs on the target by itself: Python 3.8 or newer with torch, nothing else; the CUDA runtime is called
through ctypes. One JSON line a row as soon as it is measured, first a header, last {"end": true}.

The process that was started only watches: its forked workers (each its own process group) measure, and
it kills them at --limit, when standard input closes, or on a signal. Peer access is a state of a whole
process, so one worker measures with it and a second one without.
"""

# ruff: noqa: N818, PTH100, PTH120, PTH123, PTH207
import os
import sys

if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(sys.argv[0])):
    del sys.path[0]  # this file must not stand in for the standard library's copy

import argparse
import ctypes
import functools
import glob
import hashlib
import json
import random
import select
import signal
import statistics
import subprocess
import time

KIB = 1024
LADDER = [12 * KIB, 48 * KIB, 192 * KIB, 768 * KIB, 4096 * KIB, 16384 * KIB]
GRAPH_COPIES, QUEUED_COPIES = 50, 200  # in one sample
BUSY_MIB = 2048  # memory in use without a visible process: another container's
KIND_DEFAULT = 4  # cudaMemcpyDefault: the runtime tells from the addresses
CAPTURE_RELAXED, PEER_ALREADY_ENABLED = 2, 704
HOLD_CYCLES = 8_000_000  # about 4 ms, longer than 200 copies take to queue


NOTHING = int  # a call that does nothing


class Refusal(Exception):
    """Why nothing can be measured, and what would change that."""

    def __init__(self, error, fix):
        super().__init__(error)
        self.line = {"error": error, "fix": fix}


def say(**line):
    os.write(1, (json.dumps(line) + "\n").encode())


OPTIONS = (
    ("--sizes", str, "", "bytes or 12K,4M (1024); default 12K to 16M"),
    ("--hidden", int, 0, "adds hidden x batch x bytes"),
    ("--batch", str, "1", "with --hidden: tokens in a step, as in 1,64"),
    ("--bytes", int, 2, "with --hidden: bytes of an activation"),
    ("--row-seconds", float, 0.0, "time for one row"),
    ("--limit", float, 150.0, "seconds until it is killed"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Times copies inside and between GPUs.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--pairs", choices=("first", "all"), default="first")
    ask.add_argument("--device", choices=("auto", "cpu"), default="auto")
    ask.add_argument("--force", action="store_true", help="measure beside other GPU processes")
    chosen = ask.parse_args(argv)
    chosen.row_seconds = chosen.row_seconds or (0.4 if chosen.pairs == "first" else 0.1)
    try:
        chosen.sizes = sizes_of(chosen)
    except ValueError:
        raise Refusal(
            "a size or batch is no number", "give --sizes 12K,4M and --batch 1,64"
        ) from None
    return chosen


def sizes_of(chosen):
    units = {"K": KIB, "M": KIB**2, "G": KIB**3}
    named = [s.strip().upper() for s in chosen.sizes.split(",") if s.strip()]
    sizes = [int(s[:-1]) * units[s[-1]] if s[-1] in units else int(s) for s in named] or LADDER
    batches = [int(b) for b in chosen.batch.split(",")] if chosen.hidden else []
    sizes = sorted(set(sizes + [chosen.hidden * batch * chosen.bytes for batch in batches]))
    if sizes[0] < 1:
        raise ValueError(sizes[0])
    return sizes


def summary(samples_us):
    """Median with p95, p99 and a bootstrap 95 % interval. unstable: that interval is wider than 10 %
    of the median, or the second half of the samples moved by more than that."""
    ordered = sorted(samples_us)
    count, median = len(ordered), statistics.median(ordered)
    draw = random.Random(count)
    medians = sorted(statistics.median(draw.choices(ordered, k=count)) for _ in range(400))
    low, high = medians[10], medians[389]
    half = count // 2
    drift = abs(statistics.median(samples_us[:half]) - statistics.median(samples_us[half:]))
    figures = {
        "time_us": median,
        "p95_us": ordered[min(count - 1, int(0.95 * count))],
        "p99_us": ordered[min(count - 1, int(0.99 * count))],
        "ci_low_us": low,
        "ci_high_us": high,
        "cv": statistics.pstdev(ordered) / statistics.fmean(ordered),
    }
    unstable = max(high - low, drift) > 0.1 * median
    return {**{k: round(v, 4) for k, v in figures.items()}, "samples": count, "unstable": unstable}


def report(path, source, destination, size, timing, method, samples_us, peer_access=None):
    samples_us = [max(s, 1e-3) for s in samples_us]
    row = {"path": path, "source": str(source), "destination": str(destination), "size_bytes": size}
    row.update(timing=timing, method=method, **summary(samples_us))
    if size:
        row["gb_per_s"] = round(size / row["time_us"] / 1e3, 4)
    if peer_access is not None:
        row["peer_access"] = peer_access
    say(**row)


def times_called(action, finish, seconds, most=200):
    """Microseconds of single calls, each with its finish; at least 20 of them."""
    for _ in range(5):
        action()
        finish()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < most and (len(samples) < 20 or time.perf_counter() < end):
        start = time.perf_counter_ns()
        action()
        finish()
        samples.append((time.perf_counter_ns() - start) / 1e3)
    return samples


class Cuda:
    """Calls into the CUDA runtime that torch loaded; OSError with CUDA's own words when one fails."""

    def __init__(self):
        with open("/proc/self/maps") as maps:
            found = [line.split()[-1] for line in maps if "libcudart" in line]
        found += [f for p in sys.path if p for f in glob.glob(p + "/nvidia/*/lib/libcudart.so.*")]
        if not found:
            fix = "use the torch wheels from pytorch.org, which bring libcudart.so"
            raise Refusal("the CUDA runtime library of this torch was not found", fix)
        self.library = ctypes.CDLL(found[0])
        self.library.cudaGetErrorString.restype = ctypes.c_char_p

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code and code != PEER_ALREADY_ENABLED:
            raise OSError(f"{name}: {self.failed(code)}")
        self.library.cudaGetLastError() if code else None

    def failed(self, code):
        self.library.cudaGetLastError()
        return self.library.cudaGetErrorString(code).decode()

    def capture(self, action, count, stream):
        """A CUDA graph of `count` copies; OSError where this copy cannot be captured."""
        graph, run, error = ctypes.c_void_p(), ctypes.c_void_p(), None
        self("cudaStreamBeginCapture", raw(stream), CAPTURE_RELAXED)
        try:
            for _ in range(count):
                action()
        except OSError as said:
            error = said
        code = self.library.cudaStreamEndCapture(raw(stream), ctypes.byref(graph))
        if error or code:
            raise error or OSError(f"cudaStreamEndCapture: {self.failed(code)}")
        self("cudaGraphInstantiateWithFlags", ctypes.byref(run), graph, ctypes.c_ulonglong(0))
        self("cudaGraphDestroy", graph)
        return run


def raw(stream):
    return ctypes.c_void_p(stream.cuda_stream)


class Bench:
    """Buffers, streams and events of the GPUs, and the rows they give."""

    def __init__(self, torch, chosen):
        self.cuda, self.torch, self.seconds = Cuda(), torch, chosen.row_seconds
        self.gpus = range(torch.cuda.device_count())
        if chosen.pairs == "first":
            self.gpus = self.gpus[:2]
        self.pairs = [(a, b) for a in self.gpus for b in self.gpus if a != b]
        self.pairs = self.pairs[:1] if chosen.pairs == "first" else self.pairs
        self.sizes = self.fitting(chosen.sizes)
        self.buffers = [[self.buffer(f"cuda:{g}") for _ in range(2)] for g in self.gpus]
        self.pinned = torch.zeros(self.sizes[-1], dtype=torch.uint8, pin_memory=True)
        self.streams = [torch.cuda.Stream(g) for g in self.gpus]

    def buffer(self, device):
        return self.torch.zeros(self.sizes[-1], dtype=self.torch.uint8, device=device)

    def fitting(self, sizes):
        free = min(self.torch.cuda.mem_get_info(g)[0] for g in self.gpus)
        kept = [size for size in sizes if size <= free // 4]
        if not kept:
            raise Refusal("no size fits in the GPUs' free memory", "stop what fills them")
        for size in sizes[len(kept) :]:
            say(note=f"{size} bytes left out: more than a quarter of a GPU's free memory")
        return kept

    def elapsed_us(self, queue, stream, hold=False):
        """Device time of what `queue` queues. hold: keep the device busy for some milliseconds
        meanwhile, so that the time the host takes to queue is not measured."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        if hold:
            with self.torch.cuda.stream(stream):
                self.torch.cuda._sleep(HOLD_CYCLES)
        start.record(stream)
        queue()
        stop.record(stream)
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def device_times(self, copy, stream):
        """(method, microseconds of one copy in each sample)."""
        once = min(self.elapsed_us(copy, stream) for _ in range(3))
        count = max(4, min(GRAPH_COPIES, int(4000 / max(once, 1))))
        try:
            run = self.cuda.capture(copy, count, stream)
        except OSError:
            queue = lambda: [copy() for _ in range(QUEUED_COPIES)]  # noqa: E731
            return "queued", self.repeated(queue, QUEUED_COPIES, stream, True)
        launch = lambda: self.cuda("cudaGraphLaunch", run, raw(stream))  # noqa: E731
        samples = self.repeated(launch, count, stream, False)
        self.cuda("cudaGraphExecDestroy", run)
        return "graph", samples

    def repeated(self, queue, copies, stream, hold):
        self.elapsed_us(queue, stream, hold)
        samples, end = [], time.perf_counter() + self.seconds
        while len(samples) < 200 and (len(samples) < 20 or time.perf_counter() < end):
            samples.append(self.elapsed_us(queue, stream, hold) / copies)
        return samples

    def both(self, path, source, destination, size, gpu, copy, peer_access=None):
        """One copy, timed by the device and by a caller who waits for each."""
        row, stream = (path, source, destination, size), self.streams[gpu]
        self.torch.cuda.set_device(gpu)
        try:
            method, samples = self.device_times(copy, stream)
            report(*row, "device", method, samples, peer_access)
            called = times_called(copy, stream.synchronize, self.seconds)
            report(*row, "host_sync", "call", called, peer_access)
        except OSError as error:
            say(note=f"{path} {source} to {destination}, {size} bytes: {error}")

    def copy(self, target, source, size, stream):
        to, what = ctypes.c_void_p(target.data_ptr()), ctypes.c_void_p(source.data_ptr())
        count, on = ctypes.c_size_t(size), raw(stream)
        return lambda: self.cuda("cudaMemcpyAsync", to, what, count, KIND_DEFAULT, on)

    def controls(self):
        """What a caller pays for waiting and for queueing alone."""
        stream, word = self.streams[0], ctypes.c_void_p(self.buffers[0][0].data_ptr())
        self.torch.cuda.set_device(0)
        waits = times_called(NOTHING, stream.synchronize, self.seconds)
        report("synchronise", 0, 0, 0, "host_sync", "call", waits)
        launch = lambda: self.cuda("cudaMemsetAsync", word, 0, ctypes.c_size_t(4), raw(stream))  # noqa: E731
        report("launch", 0, 0, 0, "host_sync", "call", times_called(launch, NOTHING, self.seconds))
        stream.synchronize()

    def inside_and_host(self, size):
        (one, two), stream = self.buffers[0], self.streams[0]
        self.both("same", 0, 0, size, 0, self.copy(two, one, size, stream))
        self.both("host_to_device", "cpu", 0, size, 0, self.copy(one, self.pinned, size, stream))
        self.both("device_to_host", 0, "cpu", size, 0, self.copy(self.pinned, one, size, stream))

    def peer(self, a, b, size, access):
        to = ctypes.c_void_p(self.buffers[b][1].data_ptr())
        what = ctypes.c_void_p(self.buffers[a][0].data_ptr())
        args = (to, b, what, a, ctypes.c_size_t(size), raw(self.streams[a]))
        self.both("peer", a, b, size, a, lambda: self.cuda("cudaMemcpyPeerAsync", *args), access)

    def staged(self, a, b, size):
        """Down to pinned memory on one GPU's stream, then up on the other's."""
        down, up = self.streams[a], self.streams[b]
        arrived, done = self.torch.cuda.Event(), self.torch.cuda.Event()
        first = self.copy(self.pinned, self.buffers[a][0], size, down)
        second = self.copy(self.buffers[b][1], self.pinned, size, up)

        def copy():
            first()
            arrived.record(down)
            up.wait_event(arrived)
            second()
            done.record(up)
            down.wait_event(done)

        self.both("staged", a, b, size, a, copy)

    def run(self, access):
        reach = {pair: self.torch.cuda.can_device_access_peer(*pair) for pair in self.pairs}
        if access:
            self.controls()
            self.enable(reach)
        for size in self.sizes:
            if access:
                self.inside_and_host(size)
            for a, b in self.pairs:
                if access:
                    self.staged(a, b, size)
                if reach[a, b] or not access:
                    self.peer(a, b, size, access)

    def enable(self, reach):
        if not reach:
            say(note="one GPU: copies inside it and to and from the host only")
        for (a, b), possible in reach.items():
            if not possible:
                say(note=f"GPU {a} cannot reach GPU {b}: no peer access to measure")
                continue
            for device, peer in ((a, b), (b, a)):
                self.torch.cuda.set_device(device)
                self.cuda("cudaDeviceEnablePeerAccess", peer, 0)


def run_on_cpu(torch, chosen):
    """Copies in this machine's memory: shows that the program runs."""
    say(note="no CUDA device: copies in the CPU's memory, which say nothing of any GPU")
    waits = times_called(NOTHING, NOTHING, 0.05)
    report("synchronise", "cpu", "cpu", 0, "host_sync", "call", waits)
    seconds = min(chosen.row_seconds, 0.1)
    for size in chosen.sizes:
        one, two = (torch.zeros(size, dtype=torch.uint8) for _ in range(2))
        copy = functools.partial(ctypes.memmove, two.data_ptr(), one.data_ptr(), size)
        loop = functools.partial(lambda copy: [copy() for _ in range(10)], copy)
        looped = [us / 10 for us in times_called(loop, NOTHING, seconds)]
        row = ("same", "cpu", "cpu", size)
        report(*row, "device", "queued", looped)
        report(*row, "host_sync", "call", times_called(copy, NOTHING, seconds))


def gpu_nodes():
    return glob.glob("/dev/nvidia[0-9]*") or glob.glob("/dev/dxg")


def smi(query):
    try:
        command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [
        [c.strip() for c in line.split(",")]
        for line in done.stdout.decode("utf-8", "replace").splitlines()
    ]


def refuse_when_busy():
    holders = [
        f"process {row[0]}" for row in smi("--query-compute-apps=pid,gpu_uuid") if row[0].isdigit()
    ]
    used = [
        row for row in smi("--query-gpu=index,memory.used") if len(row) == 2 and row[1].isdigit()
    ]
    holders += [f"{mib} MiB in use on GPU {gpu}" for gpu, mib in used if int(mib) > BUSY_MIB]
    if holders:
        fix = "stop what uses the GPUs, or give --force and accept figures beside other work"
        raise Refusal("the GPUs are busy: " + ", ".join(holders[:8]), fix)


def load_torch():
    try:
        import torch
    except ImportError as error:
        fix = "run this with the Python of the inference engine's environment, which has torch"
        raise Refusal(f"torch cannot be loaded by {sys.executable}: {error}", fix) from None
    return torch


def device_of(torch, chosen):
    if chosen.device == "cpu" or (not torch.cuda.is_available() and not gpu_nodes()):
        return "cpu"
    if torch.version.cuda is None:
        raise Refusal(
            "this torch was built without CUDA", "use a torch built for CUDA, or --device cpu"
        )
    try:
        torch.cuda.init()
        torch.cuda.synchronize()
    except Exception as error:  # torch raises what the driver says in many types
        words = " ".join(str(error).split("\n")[0].split())
        raise Refusal(
            f"CUDA does not start: {words}", "compare nvidia-smi's driver with torch.version.cuda"
        ) from None
    return "cuda"


def header(torch, device, argv):
    code = b""
    try:
        with open(__file__, "rb") as program:
            code = program.read()
    except (OSError, NameError):
        pass
    names = (
        [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        if device == "cuda"
        else []
    )
    driver = next((row[0] for row in smi("--query-gpu=driver_version") if row), "") if names else ""
    environment = {
        "device": device,
        "driver": driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": ", ".join(names),
        "python": sys.version.split()[0],
        "argv": " ".join(argv),
        "payload_sha256": hashlib.sha256(code).hexdigest() if code else "",
    }
    say(schema="peerpath.copy/1", environment=environment)


def work(chosen, argv, access):
    """One worker's share, in its own process. Returns the exit code; what goes wrong is one line."""
    try:
        torch = load_torch()
        device = device_of(torch, chosen)
        if access:
            header(torch, device, argv)
        if device == "cpu" and access:
            run_on_cpu(torch, chosen)
        elif device == "cuda" and (access or torch.cuda.device_count() > 1):
            Bench(torch, chosen).run(access)
        return 0
    except Refusal as refusal:
        say(**refusal.line)
    except Exception as error:  # a program's last line of defence: a line, never a traceback
        words = f"{type(error).__name__}: {error}"[:300]
        say(error=f"the measurement broke off: {words}", fix="the rows before this line hold")
    return 3


def started(task):
    """Forks a worker in its own group, which dies with this process."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if os.getppid() == parent:
            code = task()
    finally:
        os._exit(code)


def watched(child, deadline):
    """The worker's exit code, or why it was killed."""
    watch_input = not os.isatty(0)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return (
                os.WEXITSTATUS(status)
                if os.WIFEXITED(status)
                else f"killed by signal {os.WTERMSIG(status)}"
            )
        if time.monotonic() > deadline:
            return kill(child, "the time limit was reached")
        readable = select.select([0], [], [], 0.05)[0] if watch_input else time.sleep(0.05)
        if readable and not os.read(0, 4096):
            return kill(child, "standard input was closed")


def kill(child, why):
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return why


def end_by_signal(number, _frame):
    raise KeyboardInterrupt(number)


def main(argv):
    try:
        chosen = options(argv)
        if chosen.device == "auto" and gpu_nodes() and not chosen.force:
            refuse_when_busy()
    except Refusal as refusal:
        say(**refusal.line)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    deadline = time.monotonic() + chosen.limit
    for access in (True, False):
        child = 0
        try:
            child = started(lambda: work(chosen, argv, access))  # noqa: B023
            outcome = watched(child, deadline)
        except KeyboardInterrupt:
            outcome = kill(child, "it was told to stop") if child else "it was told to stop"
        if isinstance(outcome, str):
            say(stopped=outcome)
            return 4
        if outcome:
            return outcome
    say(end=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os._exit(5)
