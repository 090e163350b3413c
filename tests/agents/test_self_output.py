"""Our script in place of what it prints, as people paste by mistake."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agents.collector import build_script
from agents.facts import View
from agents.facts.host import HOST_IOMMU
from agents.probe import Output
from agents.probes import all_probes, handed_for
from agents.raw_reading import RawReading, read_raw
from agents.safe_parse import parse_safely
from agents.self_output import NOTE


def _script(role: View) -> str:
    return build_script(handed_for(role), role=role, nonce="0" * 32)


def _listed(role: View, folder: Path) -> str:
    file = folder / "collector.sh"
    file.write_text(_script(role))
    return subprocess.run(["sh", str(file), "--list"], capture_output=True, text=True, check=True, timeout=60).stdout


def _read(text: str, role: View) -> RawReading:
    return read_raw(text.encode(), role=role)


@pytest.mark.parametrize("role", [View.HOST, View.GUEST])
def test_the_script_says_nothing_of_a_machine(role: View, tmp_path: Path) -> None:
    script = _script(role)
    for text in (script, script.replace("\n", "\r\n"), script[: len(script) // 2]):
        assert not _read(text, role).items
    assert _read(script, role).notes == (NOTE,)
    listed = _read(_listed(role, tmp_path), role)
    assert not listed.items
    assert listed.notes == (NOTE,)


def test_what_stands_around_it_in_a_terminals_log_is_read() -> None:
    topology = "vm:~$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"
    alone = _read(topology, View.GUEST)
    script = _script(View.GUEST)
    both = _read(f"vm:~$ cat peerpath-guest.sh\n{script}{topology}", View.GUEST)
    assert [item.reader for item in both.items] == [item.reader for item in alone.items]
    assert both.items[0].lines == (script.count("\n") + 3, script.count("\n") + 5)
    assert not both.notes


def test_a_user_who_may_not_read_the_kernel_log_says_less_than_root() -> None:
    probe = all_probes()["host.iommu"]
    said = "iommu groups: 0\niommu units: \n"
    (refused,) = parse_safely(probe, Output(said, "dmesg: read kernel buffer failed: Operation not permitted\n"))
    (root,) = parse_safely(probe, Output(said))
    assert refused.fact_id == root.fact_id == HOST_IOMMU.id
    assert "the kernel log" in refused.missing
    assert len(root.missing) < len(refused.missing)
    (logged,) = parse_safely(probe, Output(said + "iommu: sshd: Permission denied\n"))
    assert "the kernel log" not in logged.missing
