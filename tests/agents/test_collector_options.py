"""The collector in a person's hands: its options, in every shell, and what --redact hides and leaves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agents.collector import build_script, script_sha256
from agents.facts import View
from agents.framing import Bundle, read_bundle
from agents.probe import Command, Output, Probe
from agents.probes import all_probes, handed_for
from agents.raw_reading import read_output
from tests.agents.asking import NONCE, probe_of, script_of

pytestmark = pytest.mark.service
SHELLS = [words for words in (["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0])]
CASES = sorted(Path(__file__).parent.glob("probes/*/*/*/stdout.txt"))
SECRETS = """\
name: customer-one
hostname: customer-two
smbios1: uuid=6c0b4c6a-7a39-4d3a-9f0b-0d6b1a2c3d4e,serial=ACME000123
net0: virtio=BC:24:11:AA:BB:CC,bridge=vmbr0
ipconfig0: ip=192.0.2.17/24,gw=192.0.2.1,ip6=2001:db8::17/64
scsi0: acme-store:vm-128-disk-0,serial=DISK0042
-name
customer-one,debug-threads=on
file=/mnt/pve/acme-nfs/images/128/vm.raw
       128 customer-one         running    524288
  <name>customer-one</name>
map id=10de:2bb1,iommugroup=41,node=rack7-pve,path=0000:41:00.0
\tCapabilities: [160 v1] Device Serial Number b8-ce-f6-03-00-0a-bc-de
mail erika@acme.example
--api-key sk-very-secret-key-1
"""
KEPT = """\
0000:41:00.0 ffff:ff:01.0 12:34:56 2026-03-03T09:12:44Z 10de:2bb1
uuid=03000200-0400-0500-0006-000700080009 00000000-0000-0000-0000-000000000000
serial0: socket
Serial Number: Not Specified
listen 127.0.0.1 mask 255.255.255.0
hostpci0: mapping=pro6000,pcie=1
-device vfio-pci,host=0000:41:00.0,id=hostpci0.0,bus=pci.0,addr=0x10
args: -set device.hostpci0.x-nv-gpudirect-clique=0
root=/dev/mapper/pve-root pve-manager: 9.0.3
"""


def _run(shell: list[str], script: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*shell, str(script), *options], capture_output=True, timeout=60)


def _redacted(shell: list[str], folder: Path, *probes: Probe) -> Bundle:
    path = folder / "s.sh"
    path.write_text(script_of(*probes))
    done = _run(shell, path, "--redact")
    assert done.returncode == 0, done.stderr
    assert b"which VM a guest is" in done.stderr
    bundle = read_bundle(done.stdout)
    assert (bundle.complete, bundle.hash_matches, bundle.edited) == (True, True, False)
    return bundle


def _printing(name: str, text: str, folder: Path) -> Probe:
    path = folder / f"{name}.txt"
    path.write_text(text)
    return probe_of(name, Command(f"cat {path}"), cap_kib=4096)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
@pytest.mark.parametrize("role", [View.HOST, View.GUEST])
def test_the_real_scripts_take_every_option(shell: list[str], role: View, tmp_path: Path) -> None:
    path = tmp_path / "s.sh"
    text = build_script(handed_for(role), role=role, nonce=NONCE)
    path.write_text(text)
    listed = _run(shell, path, "--list").stdout.decode()
    assert [line.split()[0] for line in listed.splitlines() if line[:1] != " "] == [
        probe.id for probe in handed_for(role)
    ]
    name = f"{role}.kernel_cmdline"
    only = read_bundle(_run(shell, path, "--only", name).stdout)
    assert [frame.probe_id for frame in only.frames] == [name]
    assert only.header is not None
    assert only.header.ran_sha256 == only.header.script_sha256 == script_sha256(text)
    hidden = read_bundle(_run(shell, path, "--redact").stdout)
    assert (hidden.complete, hidden.hash_matches) == (True, True)
    assert hidden.header is not None
    assert hidden.header.redacted
    wrong = _run(shell, path, "--only", "host.no_such")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert _run(shell, path, "--wipe").returncode == 2


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_redact_hides_what_names_somebody_and_leaves_the_rest(shell: list[str], tmp_path: Path) -> None:
    bundle = _redacted(
        shell,
        tmp_path,
        _printing("secrets", SECRETS, tmp_path),
        _printing("kept", KEPT, tmp_path),
        _printing("again", "name: customer-one\nname: customer-three\n", tmp_path),
    )
    secrets, kept, again = (frame.output.stdout for frame in bundle.frames)
    for secret in (
        *("customer", "6c0b4c6a", "ACME000", "BC:24:11", "192.0.2", "2001:db8", "acme", "DISK0042"),
        *("rack7", "b8-ce", "erika", "very-secret"),
    ):
        assert secret not in secrets, secret
    assert secrets.count("<host-1>") == 4  # the same name, the same word
    assert again == "name: <host-1>\nname: <host-4>\n"
    assert len(secrets.splitlines()) == len(SECRETS.splitlines())
    assert kept == KEPT


def test_two_redacted_outputs_never_seem_to_name_the_same_machine(tmp_path: Path) -> None:
    uuid = "uuid=6c0b4c6a-7a39-4d3a-9f0b-0d6b1a2c3d4e\n"
    outputs = []
    for nonce in ("0123456789abcdef", "fedcba9876543210"):
        path = tmp_path / "s.sh"
        probe = _printing("a", uuid, tmp_path)
        path.write_text(build_script([probe], role=View.GUEST, nonce=nonce))
        outputs.append(read_bundle(_run(["sh"], path, "--redact").stdout).frames[0].output.stdout)
    assert outputs[0] != outputs[1]
    assert all("6c0b4c6a" not in output for output in outputs)


def test_a_truncated_output_is_still_told_when_it_was_redacted(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("name: customer-one\n" * 1000)
    bundle = _redacted(["sh"], tmp_path, probe_of("long", Command(f"cat {path}"), cap_kib=2))
    assert bundle.frames[0].output.truncated
    assert "customer-one" not in bundle.frames[0].output.stdout


@pytest.mark.thorough
def test_every_known_output_reads_the_same_when_it_was_redacted(tmp_path: Path) -> None:
    cases = [(f"{p.parts[-4]}.{p.parts[-3]}", p) for p in CASES]
    cases = [(reader, path) for reader, path in cases if reader in all_probes()]
    assert len(cases) > 300
    probes = [probe_of(f"c{number}", Command(f"cat '{path}'"), cap_kib=4096) for number, (_, path) in enumerate(cases)]
    frames = _redacted(["sh"], tmp_path, *probes).frames
    for (reader, path), frame in zip(cases, frames, strict=True):
        before = read_output(reader, Output(path.read_text(errors="replace")))
        after = read_output(reader, Output(frame.output.stdout))
        assert [(r.fact_id, r.kind) for r in before] == [(r.fact_id, r.kind) for r in after], path


def test_without_awk_nothing_is_printed_unredacted(tmp_path: Path) -> None:
    for tool in ("sh", "mktemp", "date", "id", "sed", "rm", "cat", "sha256sum", "grep"):
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    script = tmp_path / "s.sh"
    script.write_text(
        script_of(probe_of("a", "echo name: customer-one")).replace(":/usr/local/sbin:/usr/sbin:/sbin", "")
    )
    done = subprocess.run(
        ["/bin/sh", str(script), "--redact"], capture_output=True, timeout=60, env={"PATH": str(tmp_path)}
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"needs awk" in done.stderr


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_its_last_words_say_what_to_do_and_are_not_of_the_answer(shell: list[str], tmp_path: Path) -> None:
    path = tmp_path / "s.sh"
    path.write_text(script_of(probe_of("a", "echo yes"), probe_of("b", "echo no")))
    done = _run(shell, path)
    assert b"complete; questions: 2. Give back the file" in done.stderr
    assert b"Give back" not in done.stdout
    followed = read_bundle(done.stdout + done.stderr)  # as after 2>&1
    assert followed.complete
    assert not followed.edited
    assert done.returncode == 0
