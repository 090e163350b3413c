"""Reads the GPU's work from a torch profiler's trace of any size, without holding the whole file in memory.

Kineto writes {…, "distributedInfo": {"rank": 0, …}, …, "traceEvents": [{…}, …]}. It keeps only the events on the
GPU's time line: kernels, copies, and the ranges that mark steps.
"""

import gzip
import json
import re

from lines import lost, say

CHUNK = 1 << 22  # characters
MOST_EVENT = 1 << 26  # characters of an incomplete event
MOST_KERNELS = 400_000  # over a hundred steps of a large model, and some 10 MiB of lines
BATCH = 200
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
MARK = re.compile(r"^(?:ProfilerStep#|execute_)")
RANK = re.compile(r'"distributedInfo"\s*:\s*\{[^{}]{0,2000}?"rank"\s*:\s*(\d+)')
NEXT = re.compile(r"[\s,]*")


def events(path, head):
    """Each event of the file. head: called with the text before the events. Raises ValueError for a cut or other
    file."""
    opened = gzip.open if path.suffix == ".gz" else open
    decoder = json.JSONDecoder()
    with opened(str(path), "rt", encoding="utf-8", errors="replace") as file:
        text, at = "", -1
        while at < 0:
            more = file.read(CHUNK)
            if not more or len(text) > MOST_EVENT:
                raise ValueError("no events in it")
            text += more
            opening = re.search(r'"traceEvents"\s*:\s*\[', text)
            at = opening.end() if opening else -1
        head(text[:at])
        whole = False
        while True:
            at = NEXT.match(text, at).end()
            if at < len(text) and text[at] == "]":
                return
            if len(text) - at < CHUNK // 8 and not whole:
                more = file.read(CHUNK)
                whole, text, at = not more, text[at:] + more, 0
            try:
                event, at = decoder.raw_decode(text, NEXT.match(text, at).end())
            except ValueError:
                if whole or len(text) - at > MOST_EVENT:
                    raise ValueError("it is cut, or an event in it is malformed") from None
                more = file.read(CHUNK)
                whole, text, at = not more, text[at:] + more, 0
                continue
            yield event


class Recording:
    """Prints the GPU's events as lines: each name once, then kernels by the number of their name."""

    def __init__(self):
        self.names, self.rows, self.marks = {}, [], []
        self.kernels, self.base, self.rank = 0, None, None

    def head(self, text):
        match = RANK.search(text)
        self.rank = int(match[1]) if match else None

    def take(self, event):
        """Takes an event; False when there are enough."""
        category = event.get("cat") if isinstance(event, dict) else None
        if category in WORK or category == "gpu_user_annotation":
            self._keep_event(event, category)
        return self.kernels < MOST_KERNELS

    def _keep_event(self, event, category):
        start, took = event.get("ts"), event.get("dur")
        name = str(event.get("name", ""))
        if event.get("ph") != "X" or not _figure(start) or not _figure(took):
            return
        self.base = float(start) if self.base is None else self.base
        start_us = round(float(start) - self.base, 3)
        if category in WORK:
            args = event.get("args") if isinstance(event.get("args"), dict) else {}
            self.rows.append([self._number(name), str(args.get("device")), start_us, round(took, 3)])
            self.kernels += 1
            if len(self.rows) >= BATCH:
                self.flush()
        elif MARK.match(name):
            self.marks.append([name[:200], str(event.get("pid")), str(event.get("tid")), start_us])

    def _number(self, name):
        if name not in self.names:
            self.names[name] = len(self.names)
            say(kernel_name=self.names[name], text=name[:600])
        return self.names[name]

    def flush(self):
        if self.rows:
            say(kernels=self.rows)
        if self.marks:
            say(marks=self.marks)
        self.rows, self.marks = [], []


def _figure(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def tell(path):
    """Prints the GPU's work in this recording. Returns the number of kernels."""
    recording = Recording()
    for event in events(path, recording.head):
        if not recording.take(event):
            lost("the rest of the recording", f"only its first {MOST_KERNELS} kernels are read")
            break
    recording.flush()
    say(trace=path.name, size_bytes=path.stat().st_size, kernels_read=recording.kernels, rank=recording.rank)
    return recording.kernels
