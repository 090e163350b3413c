"""QEMU command lines: splitting, cliques from everywhere they can come from, and a real process."""

from __future__ import annotations

import json
import shlex
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.parsing import qemu_command
from agents.probe import Output
from agents.probes.host import qemu_running
from tests.waiting import wait_until

pytestmark = pytest.mark.thorough

SHELL_WORD = st.text(string.ascii_letters + string.digits + " '\"\\,=-", min_size=1, max_size=15)
DEVICE = "-device vfio-pci,host=0000:1b:00.0,id=gpu0"


@settings(max_examples=100)
@given(st.lists(SHELL_WORD, max_size=6))
def test_what_a_shell_would_quote_is_split_back(words: list[str]) -> None:
    assert qemu_command.split(shlex.join(words)) == tuple(words)


@settings(max_examples=50)
@given(st.dictionaries(st.text("abc", min_size=1), st.text("xyz'\"", max_size=5)))
def test_json_keeps_its_own_quotes(value: dict[str, str]) -> None:
    word = json.dumps(value, separators=(",", ":"))
    assert qemu_command.split(f"-device {word} -x") == ("-device", word, "-x")


@settings(max_examples=50)
@given(st.text("'\"\\ ab{", max_size=40))
def test_no_quoting_fails(line: str) -> None:
    assert "".join(qemu_command.split(line)).count("a") == line.count("a")


@pytest.mark.parametrize(
    ("extra", "clique"),
    [
        (DEVICE + ",x-nv-gpudirect-clique=3", 3),
        (DEVICE + " -set device.gpu0.x-nv-gpudirect-clique=0x2", 2),
        (DEVICE + ",x-nv-gpudirect-clique=3 -set device.gpu0.x-nv-gpudirect-clique=1", 1),
        (DEVICE + " -set device.other.x-nv-gpudirect-clique=1", None),
        (DEVICE, None),
        ('-device {"driver":"vfio-pci","host":"0000:1b:00.0","id":"gpu0","x-nv-gpudirect-clique":5}', 5),
    ],
)
def test_where_a_clique_can_stand(extra: str, clique: int | None) -> None:
    (found,) = qemu_command.parse(f"/usr/bin/kvm -id 7 -machine q35 {extra}")
    (device,) = found.command.devices
    assert device.clique == clique
    assert device.host_address == "0000:1b:00.0"
    assert found.command.vm_id == 7


def test_a_promise_is_not_a_running_process() -> None:
    line = f"/usr/bin/kvm -id 7 -machine q35 {DEVICE}"
    assert not qemu_command.parse(line)[0].command.running
    assert not qemu_command.parse(f"# qm showcmd 7\n{line}")[0].command.running
    assert qemu_command.parse(f"root 4711 9.0 1.0 1 1 ? Sl 10:00 1:00 {line}")[0].command.running


def test_arguments_one_a_line_as_tr_prints_them() -> None:
    text = "/usr/bin/kvm\n-id\n7\n-accel\nkvm\n-machine\nq35\n-device\nvfio-pci,host=01:00.0\n"
    (found,) = qemu_command.parse(text)
    assert found.command.running
    assert found.command.machine == "q35"
    assert found.command.devices[0].host_address == "0000:01:00.0"


def test_secrets_are_masked() -> None:
    line = "/usr/bin/kvm -machine q35 -object secret,id=s,data=hunter2 -spice port=1,password=hunter2"
    (found,) = qemu_command.parse(line)
    assert "hunter2" not in found.command.text
    assert "id=s" in found.command.text


def test_the_probe_finds_a_process_of_that_name(tmp_path: Path) -> None:
    program = tmp_path / "kvm"
    program.symlink_to(Path(sys.executable).resolve())
    arguments = ["-id", "9", "-machine", "q35", "-object", "secret,id=s,data=hunter2"]
    with subprocess.Popen([str(program), "-c", "import time; time.sleep(600)", *arguments]) as process:
        try:
            stdout = _when_started(process.pid)
        finally:
            process.kill()
    assert "hunter2" not in stdout
    (reading,) = qemu_running.parse(Output(stdout))
    assert reading.value is not None
    assert [(c.vm_id, c.machine, c.running) for c in reading.value] == [(9, "q35", True)]


def _when_started(pid: int) -> str:
    printed = ""

    def shows() -> bool:
        nonlocal printed
        command = ["sh", "-c", qemu_running.probe.commands[0].sh]
        printed = subprocess.run(command, capture_output=True, text=True).stdout
        return f"/proc/{pid}/cmdline" in printed

    wait_until(shows)
    return printed
