"""Finds the folders of an engine's traces, and the new traces in them. The engine may run in a container."""

import contextlib
import json
import os
import re
import shutil
import time
from pathlib import Path

ENGINES = re.compile(rb"sglang|vllm", re.IGNORECASE)
PORT = re.compile(rb"--port[ =](\d+)")
# Rank 0 of whatever the engine counts, as SGLang and vLLM name their files.
FIRST_RANK = re.compile(r"(?:TP-0(?:\D|$)|rank[-_]?0(?:\D|$))")
QUIET_SECONDS = 2.0  # without growth: then a file is complete


def engines(port):
    """(root, working folder, environment, arguments) of each readable engine process; of those whose command line names
    this port alone, where one does. In a container an engine may name another port than it is reached by."""
    processes = list(_processes())
    named = [process for process in processes if int((PORT.search(b" ".join(process[3])) or [0, -1])[1]) == port]
    return named or processes


def _processes():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            argv = (process / "cmdline").read_bytes().split(b"\0")
            if int(process.name) == os.getpid() or not ENGINES.search(b" ".join(argv)):
                continue
            environment = (process / "environ").read_bytes().split(b"\0")
            cwd = os.readlink(str(process / "cwd"))  # noqa: PTH115, Python 3.8 has no Path.readlink
            yield process / "root", cwd, environment, argv
        except OSError:  # it has ended, or belongs to another account
            continue


def configured(port):
    """The trace folders that running engines are configured with, as paths of this machine."""
    for root, cwd, environment, argv in engines(port):
        home = next((line[5:].decode() for line in environment if line.startswith(b"HOME=")), "/")
        for folder in _configured_folders(environment, argv):
            whole = home + folder[1:] if folder.split("/")[0] == "~" else folder
            yield root / str(Path(cwd) / whole).lstrip("/")


def _configured_folders(environment, argv):
    words = [word.decode("utf-8", "replace") for word in argv]
    for line in environment:
        name, _, value = line.decode("utf-8", "replace").partition("=")
        if name in ("VLLM_TORCH_PROFILER_DIR", "SGLANG_TORCH_PROFILER_DIR") and value:
            yield value
    for i, word in enumerate(words):
        name, _, value = word.partition("=")
        if not name.startswith(("--profiler-config", "--profiler_config")):
            continue
        value = value or (words[i + 1] if i + 1 < len(words) else "")
        if name.endswith(".torch_profiler_dir"):
            yield value
        with contextlib.suppress(ValueError, TypeError, KeyError):
            yield str(json.loads(value)["torch_profiler_dir"])


def seen_from_here(folder, port):
    """The folder itself, and its place in each engine's container."""
    return [Path(folder), *(root / folder.lstrip("/") for root, *_ in engines(port))]


def traces(folders):
    """{(device, inode): (path, bytes)}: each file once, though several processes share their root. The profiler packs
    its trace through a temporary file, which may vanish at any moment."""
    by_file = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if path.name.endswith((".json", ".json.gz")):
                    with contextlib.suppress(OSError):
                        about = path.stat()
                        by_file.setdefault((about.st_dev, about.st_ino), (path, about.st_size))
    return by_file


def new_traces(folders, before, until):
    """The new and complete files, rank 0 first; [] when there is none."""
    sizes, quiet = {}, time.monotonic()
    while time.monotonic() < until:
        now = {k: file for k, file in traces(folders()).items() if k not in before}
        if now != sizes:
            sizes, quiet = now, time.monotonic()
        elif now and time.monotonic() - quiet >= QUIET_SECONDS:
            paths = [path for path, _ in now.values()]
            return sorted(paths, key=lambda p: (not FIRST_RANK.search(p.name), p.name))
        time.sleep(0.2)
    return []


def remove(places):
    """Removes these folders. True when nothing of them is left."""
    for path in places:
        shutil.rmtree(str(path), ignore_errors=True)
    return not any(path.exists() for path in places)
