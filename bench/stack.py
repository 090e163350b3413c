"""Peerpath with everything around it, as processes of our own on loopback: PostgreSQL, Redis, machines
with an sshd each, web, workers, reconciler. Each can be killed and started again; all end at exit.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The allocator as the image has it.
ALLOCATOR = dict(re.findall(r"\b(MALLOC_ARENA_MAX|GLIBC_TUNABLES)=(\S+)", (ROOT / "Dockerfile").read_text()))
MARK = "PEERPATH_BENCH"  # in the environment of everything that runs on one of our machines


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


@dataclass
class Machine:
    """An sshd on a port of its own. tools: a folder that is first on its sessions' PATH. instead: a
    program that is run in place of what is asked for."""

    folder: Path
    port: int
    tools: Path
    instead: Path | None = None
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def mark(self) -> str:
        return f"{MARK}={self.folder.name}-{self.port}"

    def start(self) -> None:
        config = self.folder / f"sshd-{self.port}"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/user_key.pub\nPidFile none\nUsePAM no\n"
            f"StrictModes no\nPermitRootLogin yes\nMaxStartups 200\nMaxSessions 20\n"
            f"SetEnv {self.mark} PATH={self.tools}:/usr/local/bin:/usr/bin:/bin\n"
            + (f"ForceCommand {self.instead}\n" if self.instead else "")
        )
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", str(config)], stderr=subprocess.DEVNULL)
        wait_for_port(self.port)

    def sessions(self) -> list[int]:
        """The sshd processes that serve connections, and nothing that they started."""
        parents, servers = {self.process.pid}, []
        for _ in range(2):
            children = [pid for pid in _children(parents) if _name(pid).startswith("sshd")]
            servers += children
            parents = set(children)
        return servers

    def running(self) -> list[int]:
        """What runs on this machine."""
        return [pid for pid in _all() if self.mark.encode() in _environment(pid).split(b"\0")]

    def kill_sessions(self) -> None:
        for pid in self.sessions():
            _kill(pid)

    def kill(self) -> None:
        for pid in [self.process.pid, *self.sessions()]:
            _kill(pid)
        self.process.wait()


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _environment(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def _children(parents: set[int]) -> list[int]:
    pids = []
    for pid in _all():
        with contextlib.suppress(OSError, IndexError):
            text = Path(f"/proc/{pid}/stat").read_text()
            if int(text.rsplit(")", 1)[1].split()[1]) in parents:
                pids.append(pid)
    return pids


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@dataclass
class Stack:
    folder: Path
    settings: dict[str, str]
    postgres_port: int = field(default_factory=free_port)
    redis_port: int = field(default_factory=free_port)
    web_port: int = field(default_factory=free_port)
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
            "PEERPATH_DATA": str(self.folder / "data"),
            "PEERPATH_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{self.postgres_port}/postgres",
            "PEERPATH_REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "PEERPATH_PUBLIC_URL": f"http://127.0.0.1:{self.web_port}",
            "PEERPATH_REACH_LOOPBACK": "yes",
            **ALLOCATOR,
            **self.settings,
        }

    def start(self, name: str, *argv: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self.started[name] = subprocess.Popen(argv, cwd=ROOT, env=os.environ | self.environment, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self.started.pop(name)
        process.kill()
        process.wait()

    def manage(self, name: str, *arguments: str) -> None:
        self.start(name, sys.executable, "manage.py", *arguments)

    def start_worker(self, name: str) -> None:
        celery = [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker"]
        self.start(name, *celery, "-l", "warning", "-n", f"{name}@bench")

    def start_web(self) -> None:
        self.manage("web", "serve", "--port", str(self.web_port))

    def start_redis(self) -> None:
        options = ("--save", "", "--bind", "127.0.0.1", "--dir", str(self.folder))
        self.start("redis", "redis-server", "--port", str(self.redis_port), *options)
        wait_for_port(self.redis_port)

    def add_machine(self, tools: Path, instead: Path | None = None) -> Machine:
        machine = Machine(self.folder, free_port(), tools, instead)
        machine.start()
        self.machines.append(machine)
        return machine

    def init_postgres(self) -> None:
        options = f"-p {self.postgres_port} -k {self.folder} -c listen_addresses=127.0.0.1"
        (self.folder / "options").write_text(options)
        self._pg("-o", "-A trust -U postgres -N", "init")
        self.start_postgres()

    def start_postgres(self) -> None:
        options = (self.folder / "options").read_text()
        self._pg("-o", options, "-l", str(self.folder / "pg" / "log"), "start")

    def kill_postgres(self) -> None:
        self._pg("-m", "immediate", "stop")

    def _pg(self, *arguments: str) -> None:
        control = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))[-1]
        as_postgres: list[str] = []
        if os.geteuid() == 0:
            as_postgres = ["runuser", "-u", "postgres", "--"]
        subprocess.run(
            [*as_postgres, str(control), "-D", str(self.folder / "pg" / "data"), "-w", "-s", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )


@contextlib.contextmanager
def stack(**settings: str) -> Iterator[Stack]:
    """PostgreSQL and Redis, migrated and ready; this process's Django uses them too."""
    folder = Path(tempfile.mkdtemp(prefix="peerpath-bench-", dir="/tmp"))
    folder.chmod(0o755)  # postgres walks through it
    (folder / "pg").mkdir()
    if os.geteuid() == 0:
        for path in (folder, folder / "pg"):
            shutil.chown(path, pwd.getpwnam("postgres").pw_uid)
    for key in ("host_key", "user_key"):
        make_key(folder / key)
    made = Stack(folder, settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    try:
        made.init_postgres()
        made.start_redis()
        os.environ.update(made.environment)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, check=True)
        yield made
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the tidying
        for name in list(made.started):
            made.kill(name)
        for machine in made.machines:
            machine.kill()
            for pid in machine.running():
                _kill(pid)
        with contextlib.suppress(subprocess.CalledProcessError):
            made.kill_postgres()
        shutil.rmtree(folder, ignore_errors=True)


def administrator() -> Any:
    """The person who asks for the runs. Django has been set up."""
    from webapp.accounts.models import User

    made, _ = User.objects.get_or_create(username="bench", defaults={"is_staff": True})
    return made


def target_of(session: Any, machine: Machine, user: Any) -> Any:
    """A target whose key is stored and whose host key is accepted."""
    from agents.host_keys import HostKey
    from webapp.records import stored_keys
    from webapp.records.models import PinnedHostKey, StoredKey, Target

    key = StoredKey.objects.filter(owner=user).first() or stored_keys.key_add(
        user, name="bench", private_key=(machine.folder / "user_key").read_text()
    )
    pin = HostKey.from_line((machine.folder / "host_key.pub").read_text())
    PinnedHostKey.objects.create(
        session=session,
        host="127.0.0.1",
        port=machine.port,
        key_line=pin.line,
        fingerprint=pin.fingerprint,
        accepted_by=user,
    )
    return Target.objects.create(
        session=session,
        role="guest",
        agent="ssh",
        host="127.0.0.1",
        port=machine.port,
        user=getpass.getuser(),
        stored_key=key,
        created_by=user,
    )
