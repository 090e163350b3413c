"""`diagnose ssh://…` against a real OpenSSH server, and what it says when that does not go well."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Sshd, free_port
from tests.waiting import OWN, wait_until
from tests.webapp.config.test_diagnose_command import contract, known

pytestmark = pytest.mark.service
Peerpath = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]
Alive = Callable[[str], list[int]]
# Tools that real guests often lack.
LACKING = {"lspci", "systemd-detect-virt", "lsmod", "dmidecode", "lscpu", "nvidia-smi"}


def words(sshd: Sshd, tmp_path: Path, pinned: str = "host_key", identity: str = "user_key") -> tuple[object, ...]:
    """The arguments that reach it, with the pinned key as the only line of a known_hosts file."""
    trusted = tmp_path / "known_hosts"
    trusted.write_text(f"[127.0.0.1]:{sshd.port} {sshd.pin(pinned).line}\n" if pinned else "")
    source = f"ssh://{getpass.getuser()}@127.0.0.1:{sshd.port}"
    keys = ("--identity", sshd.folder / identity, "--known-hosts", trusted)
    return ("diagnose", source, *keys, "--json")


def kernel_cmdline() -> str:
    return Path("/proc/cmdline").read_text().strip()


def restart(sshd: Sshd, more: str) -> None:
    sshd.stop()
    sshd.start(more=more)


def tools(folder: Path, without: set[str], **scripts: str) -> Path:
    """A folder for PATH: this machine's tools but some, and those that stand here as sh."""
    folder.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if tool.name not in without | scripts.keys():
            (folder / tool.name).symlink_to(tool)
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


# --- it goes well ------------------------------------------------------------------------------------


def test_a_machine_is_diagnosed(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    done = peerpath(*words(sshd, tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    found = contract(done.stdout)
    assert known(found, "guest.kernel_cmdline") == kernel_cmdline()
    assert found["unrecognised"] == []


def test_noise_of_the_login_shell_is_no_output(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text(
        "printf '\\033[1;31mWelcome\\033[0m to gpu-vm\\r\\n=0= probe guest.virt_kind\\n| kvm\\n'\n"
        f"echo 'mesg: ttyname failed' >&2\necho read >>{home}/was-read\n"
    )
    (home / "motd").write_text("Authorised use only\n")
    restart(sshd, f"SetEnv HOME={home}\nBanner {home}/motd")
    done = peerpath(*words(sshd, tmp_path))
    assert (home / "was-read").exists(), "this machine's shell read no .bashrc: nothing was tried"
    assert done.returncode == 0, done.stderr
    assert known(contract(done.stdout), "guest.kernel_cmdline") == kernel_cmdline()


def test_a_machine_that_lacks_tools_is_read_from_sysfs(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    restart(sshd, f"SetEnv PATH={tools(tmp_path / 'bin', LACKING)}")
    done = peerpath(*words(sshd, tmp_path))
    assert done.returncode == 0, done.stderr
    found = contract(done.stdout)
    devices = list(Path("/sys/bus/pci/devices").glob("*"))
    assert len(known(found, "guest.pci_tree")) == len(devices)
    assert found["facts"]["guest.virt_kind"]["kind"] in {"known", "not_run"}
    assert found["facts"]["guest.gpu_count_smi"]["kind"] == "unsupported"
    assert not any(gate["state"] == "pass" for gate in found["ladder"])


# --- it does not -------------------------------------------------------------------------------------


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (4, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_an_unknown_host_key_is_shown_and_nothing_is_sent(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    restart(sshd, f"ForceCommand touch {tmp_path}/entered")
    said = refused(peerpath(*words(sshd, tmp_path, pinned="")))
    assert "has not been accepted yet" in said
    assert sshd.pin().fingerprint in said
    assert not (tmp_path / "entered").exists()


def test_a_changed_host_key_blocks(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    restart(sshd, f"ForceCommand touch {tmp_path}/entered")
    said = refused(peerpath(*words(sshd, tmp_path, pinned="other_host_key")))
    assert "is not the accepted one" in said
    assert sshd.pin().fingerprint in said
    assert sshd.pin("other_host_key").fingerprint in said
    assert not (tmp_path / "entered").exists()


def test_a_key_that_the_machine_does_not_know(peerpath: Peerpath, sshd: Sshd, tmp_path: Path) -> None:
    said = refused(peerpath(*words(sshd, tmp_path, identity="stranger_key")))
    assert "authorized_keys" in said


def test_a_refused_connection(peerpath: Peerpath, ssh_keys: Path, tmp_path: Path) -> None:
    said = refused(peerpath(*words(Sshd(ssh_keys, free_port()), tmp_path)))
    assert "Connection refused" in said


@pytest.mark.parametrize(
    ("login", "said"),
    [("echo This account is currently not available.", "not available"), ("sleep 0.1", "It said: nothing")],
)
def test_a_machine_that_runs_no_script(peerpath: Peerpath, sshd: Sshd, tmp_path: Path, login: str, said: str) -> None:
    restart(sshd, f"ForceCommand {login}")
    assert said in refused(peerpath(*words(sshd, tmp_path)))


def test_a_machine_that_dies_before_its_first_answer(start: Start, alive: Alive, sshd: Sshd, tmp_path: Path) -> None:
    restart(sshd, f"ForceCommand exec sleep 4750.{OWN}")
    process = start(*words(sshd, tmp_path))
    wait_until(lambda: bool(alive(f"sleep 4750.{OWN}")))
    sshd.stop()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (4, b"")
    assert b"the connection was lost" in err
    for pid in alive(f"sleep 4750.{OWN}"):
        os.kill(pid, signal.SIGKILL)


def test_a_machine_that_dies_meanwhile_keeps_what_came(start: Start, alive: Alive, sshd: Sshd, tmp_path: Path) -> None:
    # The last of the quick probes hangs: what came before it has been sent.
    virt = f'[ "$1" = -c ] || exec sleep 4751.{OWN}'
    hanging = tools(tmp_path / "bin", set(), **{"systemd-detect-virt": virt})
    restart(sshd, f"SetEnv PATH={hanging}")
    process = start(*words(sshd, tmp_path))
    wait_until(lambda: bool(alive(f"sleep 4751.{OWN}")))
    sshd.stop()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert b"not complete" in err
    found = contract(out.decode())
    assert known(found, "guest.kernel_cmdline") == kernel_cmdline()
    assert _kind(found, "guest.virt_kind") != "known"
    wait_until(lambda: not alive(f"sleep 4751.{OWN}"))


def _kind(found: dict[str, Any], fact_id: str) -> str:
    return str(found["facts"].get(fact_id, {"kind": "not asked"})["kind"])
