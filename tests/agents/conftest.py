"""A real OpenSSH server on loopback, with keys of its own, ended by its process id."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents.host_keys import HostKey
from agents.ssh import SshSpec
from tests.waiting import wait_until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@dataclass
class Sshd:
    """A running server. restart gives it another host key on the same port."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, host_key: str = "host_key", more: str = "") -> None:
        """more: further lines of sshd_config(5)."""
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder / host_key}\n"
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}\nPidFile none\nUsePAM no\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin yes\nMaxSessions 20\nSubsystem sftp internal-sftp\n"
            f"PermitUserEnvironment no\nPrintMotd no\n{more}\n"
        )
        self._start_process(config)
        wait_until(lambda: self._listens(config))

    def _start_process(self, config: Path) -> None:
        assert SSHD
        with (self.folder / "sshd_log").open("wb") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=log)

    def _listens(self, config: Path) -> bool:
        """Whether this server has its port; it is started anew where a process beside it had it for a moment."""
        if self.process.poll() is not None:
            time.sleep(0.1)
            self._start_process(config)
        return b"Server listening on" in (self.folder / "sshd_log").read_bytes()

    def stop(self) -> None:
        for pid in [*self.sessions(), self.process.pid]:
            subprocess.run(["kill", "-KILL", str(pid)], check=False, stderr=subprocess.DEVNULL)
        self.process.wait()

    def sessions(self) -> list[int]:
        """The processes that serve connections, grandchildren too, but nothing they started."""
        parents = {self.process.pid}
        found = []
        for _ in range(2):
            children = [pid for pid in _children(parents) if _name(pid).startswith("sshd")]
            found += children
            parents = set(children)
        return found

    def pin(self, host_key: str = "host_key") -> HostKey:
        return HostKey.from_line((self.folder / f"{host_key}.pub").read_text())

    def spec(self, **changes: object) -> SshSpec:
        known: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "host_keys": (self.pin(),),
            "identities": (str(self.folder / "user_key"),),
            "own_keys": False,
        }
        return SshSpec(**{**known, **changes})  # type: ignore[arg-type]


def _children(parents: set[int]) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[1]) in parents:
            found.append(int(stat.parent.name))
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def make_key(path: Path, kind: str = "ed25519") -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def ssh_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with host_key, other_host_key, user_key, stranger_key and authorized_keys."""
    folder = tmp_path_factory.mktemp("ssh_keys")
    for name in ("host_key", "other_host_key", "user_key", "stranger_key"):
        make_key(folder / name)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    return folder


@pytest.fixture
def sshd(ssh_keys: Path) -> Iterator[Sshd]:
    if not SSHD:
        pytest.skip("no sshd on this machine")
    # Where OpenSSH's server, started as root, wants its empty folder.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = Sshd(ssh_keys, free_port())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def alive() -> Callable[[str], list[int]]:
    """The processes whose command line holds a text, zombies left out."""

    def find(text: str) -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if text in words and state not in "ZX":
                found.append(int(folder.name))
        return found

    return find
