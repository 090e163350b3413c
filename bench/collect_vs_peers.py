"""How long one look at a machine takes: our collector against plain ssh, Fabric and ansible.

    python -m bench.collect_vs_peers [--rounds 7]

Everything runs against an sshd on loopback that this starts and ends itself, in one run and in
alternating order, with the same commands: those of the guest catalogue that this machine has the
tools for. Fabric and ansible go into a throwaway virtual environment unless they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from agents.agent import Watch
from agents.collector import build_script
from agents.facts import View
from agents.framing import read_bundle
from agents.host_keys import HostKey
from agents.probe import Probe
from agents.probes import probes_for
from agents.ssh import SshAgent, SshSpec

MOST_MS_PER_PROBE = 4.0
MOST_OF_FABRIC = 0.5


def probes_here() -> tuple[Probe, ...]:
    """The guest's probes that have at least one alternative this machine can run."""
    return tuple(
        probe
        for probe in probes_for(View.GUEST)
        if any(all(shutil.which(tool) for tool in c.needs) for c in probe.commands)
    )


def commands_of(probes: tuple[Probe, ...]) -> list[str]:
    """What the collector would run: each probe's first alternative whose tools are here."""
    return [next(c.sh for c in probe.commands if all(shutil.which(tool) for tool in c.needs)) for probe in probes]


@contextlib.contextmanager
def server(folder: Path) -> Iterator[int]:
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user_key.pub\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin yes\nMaxStartups 100\n"
    )
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", str(config)])
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def ours(folder: Path, port: int, probes: tuple[Probe, ...]) -> Callable[[], None]:
    spec = SshSpec(
        "127.0.0.1",
        port,
        getpass.getuser(),
        host_keys=(HostKey.from_line((folder / "host_key.pub").read_text()),),
        identities=(str(folder / "user_key"),),
        own_keys=False,
    )
    script = build_script(probes, role=View.GUEST, nonce="0123456789abcdef")

    def look() -> None:
        heard = bytearray()
        asyncio.run(SshAgent(spec).run(script, Watch(heard.extend, 120)))
        assert read_bundle(bytes(heard)).complete

    return look


def plain_ssh(folder: Path, port: int, commands: list[str]) -> Callable[[], None]:
    script = "\n".join(f"({command}) </dev/null" for command in commands) + "\n"
    argv = ["ssh", "-F", "none", "-i", f"{folder}/user_key", "-p", str(port), "127.0.0.1"]
    argv[1:1] = ["-o", f"UserKnownHostsFile={folder}/known_hosts"]
    return lambda: _run([*argv, "sh", "-s"], script)


def fabric(folder: Path, port: int, commands: list[str], python: str) -> Callable[[], None]:
    (folder / "commands.json").write_text(json.dumps(commands))
    (folder / "with_fabric.py").write_text(
        "import json, sys\nfrom fabric import Connection\n"
        "folder, port, user = sys.argv[1:]\n"
        "with Connection('127.0.0.1', user, int(port),"
        " connect_kwargs={'key_filename': folder + '/user_key'}) as c:\n"
        "    for command in json.load(open(folder + '/commands.json')):\n"
        "        c.run(command, hide=True, warn=True, in_stream=False)\n"
    )
    argv = [python, f"{folder}/with_fabric.py", str(folder), str(port), getpass.getuser()]
    return lambda: _run(argv, "")


def ansible(folder: Path, port: int, commands: list[str], python: str) -> Callable[[], None]:
    tasks = [{"raw": command, "ignore_errors": True} for command in commands]
    (folder / "play.json").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    (folder / "hosts").write_text(
        f"127.0.0.1 ansible_port={port} ansible_ssh_private_key_file={folder}/user_key "
        f"ansible_ssh_common_args='-o UserKnownHostsFile={folder}/known_hosts'\n"
    )
    tool = str(Path(python).with_name("ansible-playbook"))
    environment = {"ANSIBLE_PIPELINING": "1", "ANSIBLE_HOME": f"{folder}/ansible", "LC_ALL": "C.UTF-8"}
    return lambda: _run([tool, "-i", f"{folder}/hosts", f"{folder}/play.json"], "", environment)


def _run(argv: list[str], text: str, environment: dict[str, str] | None = None) -> None:
    subprocess.run(
        argv, input=text.encode(), capture_output=True, check=False, env={**os.environ, **(environment or {})}
    )


def peers_python(folder: Path) -> str:
    """A Python that has Fabric and ansible."""
    has_both = [sys.executable, "-c", "import fabric, ansible"]
    if subprocess.run(has_both, capture_output=True, check=False).returncode == 0:
        return sys.executable
    venv.create(folder / "peers", with_pip=True)
    python = str(folder / "peers" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "fabric", "ansible-core"], check=True)
    return python


def measure(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median seconds of each way; one round of all before the first that counts."""
    durations: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:
                durations[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in durations.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    probes = probes_here()
    # Slow probes side by side would hide what a probe costs, so it is told from a run without that.
    one_by_one = tuple(replace(probe, slow=False) for probe in probes)
    commands = commands_of(probes)
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as port:
        folder = Path(name)
        pin = HostKey.from_line((folder / "host_key.pub").read_text())
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {pin.line}\n")
        python = peers_python(folder)
        medians = measure(
            {
                "peerpath": ours(folder, port, probes),
                "one by one": ours(folder, port, one_by_one),
                "ssh host sh -s": plain_ssh(folder, port, commands),
                "Fabric": fabric(folder, port, commands, python),
                "ansible raw": ansible(folder, port, commands, python),
            },
            rounds,
        )
    report(medians, len(probes))


def report(medians: dict[str, float], probes: int) -> None:
    own, plain, slowest = medians["peerpath"], medians["ssh host sh -s"], medians["one by one"]
    print(f"{probes} probes, medians:")
    for name, seconds in medians.items():
        print(f"  {name:16} {seconds * 1000:8.0f} ms   {seconds / own:5.2f} x peerpath")
    per_probe, of_fabric = (slowest - plain) * 1000 / probes, own / medians["Fabric"]
    print(f"over plain ssh: {per_probe:.1f} ms a probe (aim: at most {MOST_MS_PER_PROBE})")
    print(f"of Fabric's time: {of_fabric:.2f} (aim: at most {MOST_OF_FABRIC})")


if __name__ == "__main__":
    main()
