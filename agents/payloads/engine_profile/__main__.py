"""Lets a serving engine record its own GPU work during real requests, and prints one rank's part of it.

Runs on the target by itself: Python 3.8 or newer, nothing else. It reads the trace in place, in bounded memory, and
prints only the GPU's work: first a header, last {"end": true}.
"""

import argparse
import contextlib
import secrets
import time
from pathlib import Path

from completion import caller_for
from endpoint import find, read_key, running
from lines import Refusal, lost, say
from machine import driver_version, program
from places import configured, new_traces, remove, seen_from_here, traces
from recorded import tell
from recording import record, switch_off
from startup import leave_with, run_on_engine

SCHEMA = "peerpath.engine_profile/1"
OPTIONS = (
    ("--url", str, "", "the endpoint as this machine reaches it; default: ports 30000 and 8000"),
    ("--model", str, "", "its name in requests; default: the first that the endpoint lists"),
    ("--key-file", str, "", "a file on this machine that holds the endpoint's key"),
    ("--concurrency", int, 1, "requests at once"),
    ("--steps", int, 24, "how many events of each request are recorded"),
    ("--trace-dir", str, "", "where the engine writes its traces, if its command line does not say"),
    ("--read", str, "", "a trace that lies here: it is told, and nothing is recorded"),
    ("--write-seconds", float, 300.0, "how long the engine may take to write them"),
    ("--limit", float, 600.0, "seconds until it is killed"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Records an engine's GPU work during real requests.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--force", action="store_true", help="record beside other requests")
    chosen = ask.parse_args(argv)
    if not (1 <= chosen.concurrency <= 256 and 3 <= chosen.steps <= 500):
        raise Refusal("nothing to record", "give --concurrency up to 256 and --steps from 3 to 500")
    return chosen


def measured(chosen, argv):
    (_tell_file if chosen.read else _record_engine)(chosen, argv)


def _tell_file(chosen, argv):
    path = Path(chosen.read)
    if not path.is_file():
        raise Refusal(f"{path} is no file here", "name a .json or .json.gz that the profiler wrote")
    say(schema=SCHEMA, environment={"trace": str(path), **program(argv)})
    _tell_first([path])


def _record_engine(chosen, argv):
    endpoint, model, engine = find(chosen.url, read_key(chosen.key_file), 120, chosen.model)
    busy = running(endpoint)
    if busy and not chosen.force:
        fix = "wait until the engine is idle, or give --force and accept a record of other work"
        raise Refusal(f"the engine is working on {busy:.0f} requests", fix)
    call, _ = caller_for(endpoint, model)
    environment = {
        "endpoint": endpoint.url,
        "model": model,
        "engine": engine,
        "driver": driver_version(),
        "concurrency": str(chosen.concurrency),
        **program(argv),
    }
    say(schema=SCHEMA, environment=environment)
    _record_and_tell(chosen, endpoint, call)


def _record_and_tell(chosen, endpoint, call):
    ours, port = f"/tmp/peerpath-profile-{secrets.token_hex(8)}", endpoint.parts.port

    def folders():
        return [*seen_from_here(ours, port), *([Path(chosen.trace_dir)] if chosen.trace_dir else configured(port))]

    before = set(traces(folders()))
    try:
        record(endpoint, call, chosen, ours, time.monotonic() + chosen.write_seconds)
        paths = new_traces(folders, before, time.monotonic() + chosen.write_seconds)
        if not paths:
            fix = (
                "look in its log where it wrote the trace, and upload that file on the measure page; a vLLM"
                " whose --profiler-config says cuda or proton writes none"
            )
            raise Refusal("the engine's trace was not found where this account can read", fix)
        paths = [path for path in paths if path.parent.name == Path(ours).name] or paths
        if len({path.parent for path in paths}) > 1:
            raise Refusal("several engines wrote traces just now", "name this one's folder with --trace-dir")
        _tell_first(paths)
    finally:
        if not remove(seen_from_here(ours, port)):
            say(note=f"{ours} could not be removed")


def _tell_first(paths):
    """Prints the first file with GPU work; vLLM also writes a file of its front end."""
    for path in paths:
        try:
            if tell(path):
                return
        except (OSError, EOFError, ValueError) as error:
            lost(path.name, error)
    lost("the GPU's work", "none of the traces holds any")


def stop_profiler(chosen):
    with contextlib.suppress(Refusal):
        switch_off(find(chosen.url, read_key(chosen.key_file), 1, chosen.model)[0])


def main(argv):
    return run_on_engine(argv, options, "the recording", measured, stop_profiler)


if __name__ == "__main__":
    leave_with(main)
