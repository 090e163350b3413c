"""Plays `docker` where there is no engine: docker ps, docker exec [-i] [-e NAME=VALUE] CONTAINER COMMAND….

As with the real one, what exec starts is not the client's child in its session, has an environment of its
own, sees end of file when the client goes, and is not ended with it. The machine's /proc does not show a
user what runs in a container, but here there is one /proc: so the run's mark has an "x" before it inside,
and only a sweep that was sent inside finds it.

$STAND_IN holds `containers` (lines as ps prints them) and `inside` (programs of the containers), and gets
`calls` and `pids`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(os.environ["STAND_IN"])
MARK = re.compile(r"[0-9a-f]{16}")


def note(name: str, text: str) -> None:
    with (HERE / name).open("a") as file:
        file.write(text + "\n")


def main(words: list[str]) -> int:
    note("calls", " ".join(words[:8]))
    listed = (HERE / "containers").read_text()
    if words[0] == "ps":
        sys.stdout.write("0123456789ab\n" if "-q" in words else listed)
        return 0
    variables = {"PATH": f"{HERE}/inside:{os.defpath}:/usr/local/bin", "HOME": "/root"}
    words, interactive = words[1:], False
    while words[0].startswith("-"):
        if words[0] == "-i":
            interactive = True
        else:
            name, _, value = words.pop(1).partition("=")
            variables[name] = f"x{value}"
        words.pop(0)
    container = words.pop(0)
    if container not in [line.split()[0] for line in listed.splitlines()]:
        sys.stderr.write(f"Error response from daemon: No such container: {container}\n")
        return 1
    return execute(container, words, variables, interactive)


def execute(container: str, words: list[str], variables: dict[str, str], interactive: bool) -> int:
    folder = HERE / "root" / container
    folder.mkdir(parents=True, exist_ok=True)
    sweeping = words[-3:-1] == ["-s", "--"] and MARK.fullmatch(words[-1])
    if sweeping:
        words[-1] = f"x{words[-1]}"
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE if sweeping else None,
        start_new_session=True,
    )
    note("pids", str(process.pid))
    if sweeping:
        said, _ = process.communicate(sys.stdin.buffer.read())
        sys.stdout.write(said.decode().replace("=x", "="))
    elif process.stdin:
        pump(process)
    return process.wait()


def pump(process: subprocess.Popen[bytes]) -> None:
    """Standard input, until it or the process ends: by a process of its own, as the end must not wait."""
    assert process.stdin
    child = os.fork()
    if child == 0:
        while piece := os.read(0, 65536):
            os.write(process.stdin.fileno(), piece)
        os._exit(0)
    process.stdin.close()
    process.wait()
    os.kill(child, 9)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
