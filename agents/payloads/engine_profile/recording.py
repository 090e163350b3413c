"""Runs the engine's profiler in the middle of real requests.

The profiler starts when every stream has had some tokens and stops before one ends, so that the recording holds only
decode steps: a prefill would hide where steps begin.
"""

import contextlib
import http.client
import mmap
import secrets
import statistics
import threading
import time

from completion import prompt_of
from endpoint import Failed, refused
from lines import Refusal, say

TOKENS = 4096  # requested; the streams are dropped after the recording
PLAIN = 16  # events of each stream before the recording, to time a step without the profiler
SLOWED = 1.15
ON = mmap.mmap(-1, 1)  # whether the profiler records; shared with the watching process
NOT_SET_UP = (
    "SGLang has it always; start vLLM with --profiler-config "
    '\'{"profiler": "torch", "torch_profiler_dir": "/tmp/traces", "torch_profiler_with_stack": false}\' '
    "(0.13 and later) or VLLM_TORCH_PROFILER_DIR=/tmp/traces (before), which restarts it"
)
KEY = "an SGLang with --admin-api-key wants that one: give --key-file with a file there that holds it"


class Streams:
    """`count` requests at once, and the arrivals of their events."""

    def __init__(self, call, count, seed):
        self.call, self.over = call, threading.Event()
        self.arrivals, self.failures = [[] for _ in range(count)], []
        self.threads = [threading.Thread(target=self._run_stream, args=(i, seed), daemon=True) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _run_stream(self, index, seed):
        try:
            for arrival in self.call.arrivals(prompt_of(100, seed, index), TOKENS):
                self.arrivals[index].append(arrival)
                if self.over.is_set():
                    return
        except Failed as failed:
            self.failures.append(str(failed))

    def wait_for(self, more, until):
        """Waits until every stream has so many more events. Raises Refusal when one ends first."""
        arrival_counts = [len(arrivals) + more for arrivals in self.arrivals]
        while any(len(a) < n for a, n in zip(self.arrivals, arrival_counts)):  # noqa: B905
            if not all(thread.is_alive() for thread in self.threads) or time.monotonic() > until:
                why = self.failures[0] if self.failures else "an answer ended too early"
                raise Refusal(f"the requests to record did not last: {why}", "look at the engine's log")
            time.sleep(0.01)

    def gap_ms(self, first, last):
        """Median time between two events in that time; None without any."""
        gaps = [
            (a[i] - a[i - 1]) * 1e3
            for a in self.arrivals
            for i in range(1, len(a))
            if first <= a[i - 1] and a[i] <= last
        ]
        return statistics.median(gaps) if gaps else None


def record(endpoint, call, chosen, folder, until):
    """Starts and stops the profiler in the middle of requests. Raises Refusal."""
    streams = Streams(call, chosen.concurrency, secrets.randbelow(10**9))
    try:
        streams.wait_for(PLAIN, until)
        before = time.perf_counter()
        ON[0] = 1
        _start_profiler(endpoint, folder)
        started = time.perf_counter()
        streams.wait_for(chosen.steps, until)
        ended = time.perf_counter()
    finally:
        if ON[0]:
            _post(endpoint, "/stop_profile", None, until - time.monotonic())
            ON[0] = 0
        streams.over.set()
    _say_how_slow(streams.gap_ms(0, before), streams.gap_ms(started, ended))


def switch_off(endpoint):
    """For the watching process, after the recording process was killed: a profiler that stays on slows the engine and
    fills its memory. It does not wait for the engine."""
    if ON[0]:
        with contextlib.suppress(Refusal):
            _post(endpoint, "/stop_profile", None, 1)


def _say_how_slow(plain_ms, recorded_ms):
    gaps = {"plain_gap_ms": plain_ms, "recorded_gap_ms": recorded_ms}
    say(**{name: None if ms is None else round(ms, 4) for name, ms in gaps.items()})
    if plain_ms and recorded_ms and recorded_ms > SLOWED * plain_ms:
        say(
            note=f"the profiler itself slowed the steps, from {plain_ms:.2f} to {recorded_ms:.2f} ms "
            "between events: gaps in it are longer than without it"
        )


def _start_profiler(endpoint, folder):
    """Starts the profiler. SGLang takes the folder and the activities; vLLM ignores unknown fields of the body."""
    body = {"output_dir": folder, "activities": ["GPU"], "with_stack": False}
    status, answer = _post(endpoint, "/start_profile", body, 60)
    ON[0] = status == 200
    if status in (404, 405, 501):
        raise Refusal("this engine was started without its profiler", NOT_SET_UP)
    if status in (401, 403):
        raise Refusal(f"/start_profile answered HTTP {status}", KEY)
    if status != 200:
        failed = refused(status, answer).whole
        raise Refusal(f"/start_profile answered {failed}", "look at the engine's own log")


def _post(endpoint, path, body, seconds):
    try:
        return endpoint.ask("POST", path, body, stall=max(1.0, seconds))
    except (OSError, http.client.HTTPException) as error:
        raise Refusal(f"{path}: {type(error).__name__}", "look at the engine's own log") from None
