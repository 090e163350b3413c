"""Pasted text finds its readers: typed, untyped, mixed, cut, hinted, and as other people had it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import View
from agents.framing import clean
from agents.raw_reading import read_raw
from agents.recogniser import recognise
from agents.recognition import Recognition
from tests.corpus import CORPUS, needs_corpus

MATRIX = "\tGPU0\tGPU1\nGPU0\tX\tNS\nGPU1\tNS\tX\n"
COMMAND_LINE = "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro iommu=pt\n"
TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-15\tN/A\nGPU1\tPHB\t X \t0-15\tN/A\n"


def _readers(found: Recognition) -> list[str]:
    return [part.reader for part in found.parts]


@pytest.mark.parametrize(
    "typed",
    [
        "$ nvidia-smi topo -p2p w",
        "root@vm:~# nvidia-smi topo -p2p w",
        "[me@vm ~]$ sudo nvidia-smi topo -p2p w",
        "# nvidia-smi topo -p2p w",
        "nvidia-smi topo -p2p w",
        "### `nvidia-smi topo -p2p w`",
    ],
)
def test_a_typed_command_decides_between_matrices_that_look_the_same(typed: str) -> None:
    found = recognise(f"{typed}\n{MATRIX}")
    assert _readers(found) == ["guest.topo_p2p_write"]
    assert found.parts[0].confidence >= 0.9
    assert found.unrecognised == ()


def test_without_a_command_a_matrix_is_reads_with_little_confidence() -> None:
    (part,) = recognise(MATRIX).parts
    assert part.reader == "guest.topo_p2p_read"
    assert part.confidence <= 0.6


@pytest.mark.parametrize(("name", "which"), [("topo-p2p-n.txt", "nvlink"), ("p2p_w.log", "write")])
def test_a_file_name_decides_too(name: str, which: str) -> None:
    (part,) = recognise(MATRIX, None, name).parts
    assert part.reader == f"guest.topo_p2p_{which}"
    assert part.confidence > 0.6


def test_a_log_of_several_commands_is_split_and_the_rest_is_reported() -> None:
    text = (
        f"$ nvidia-smi topo -m\n{TOPOLOGY}\n$ fortune\nSomething else entirely\n\n"
        f"$ nvidia-smi topo -p2p rw\n{MATRIX}$ cat /proc/cmdline\n{COMMAND_LINE}$ \n"
    )
    found = recognise(text)
    assert _readers(found) == [
        "guest.topo_matrix",
        "guest.topo_p2p_read",
        "guest.topo_p2p_write",
        "guest.kernel_cmdline",
    ]
    assert found.unrecognised == ((6, 7),)
    lines = text.split("\n")
    for part in found.parts:
        assert part.text == "\n".join(lines[part.first - 1 : part.last])


def test_quoting_and_pagers_do_not_hide_an_output() -> None:
    quoted = "".join(f"> {line}\n" for line in TOPOLOGY.splitlines())
    found = recognise(f"Hi,\n{quoted}--More--\n(END)\n")
    assert _readers(found) == ["guest.topo_matrix"]
    assert found.unrecognised == ((1, 1),)


@pytest.mark.parametrize(
    ("text", "role", "hint", "reader"),
    [
        (COMMAND_LINE, View.HOST, "", "host.kernel_cmdline"),
        (COMMAND_LINE, View.GUEST, "", "guest.kernel_cmdline"),
        (COMMAND_LINE, None, "cmdline.host.txt", "host.kernel_cmdline"),
        (COMMAND_LINE.replace("vmlinuz", "vmlinuz-6.17.2-1-pve"), None, "", "host.kernel_cmdline"),
    ],
)
def test_whose_command_line_it_is(text: str, role: View | None, hint: str, reader: str) -> None:
    assert _readers(recognise(f"$ cat /proc/cmdline\n{text}", role, hint)) == [reader]
    assert _readers(recognise(text, role, hint)) == [reader]


def test_a_guessed_role_is_less_sure() -> None:
    (guessed,) = recognise(f"$ cat /proc/cmdline\n{COMMAND_LINE}").parts
    (told,) = recognise(f"$ cat /proc/cmdline\n{COMMAND_LINE}", View.GUEST).parts
    assert guessed.reader == told.reader
    assert guessed.confidence < told.confidence


def test_the_benchmark_keeps_its_command_line() -> None:
    row = "  8192  2048  float  sum  -1  21.5  0.38  0.38  0  20.1  0.41  0.41  0\n"
    found = recognise(f"$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2\n{row}")
    (part,) = (p for p in found.parts if p.reader == "bench.nccl_tests")
    assert "NCCL_P2P_DISABLE" in part.text


def test_prose_is_not_taken_for_output() -> None:
    text = "We ran nvidia-smi topo -m yesterday.\nThe GPUs are slow, about 11 tok/s.\n"
    assert recognise(text) == Recognition((), ((1, 2),))
    assert recognise("\n\n$ \n") == Recognition((), ())


def test_a_missing_tool_is_an_answer() -> None:
    (part,) = recognise("$ nvidia-smi topo -p2p r\nbash: nvidia-smi: command not found\n").parts
    assert (part.reader, part.exit_code) == ("guest.topo_p2p_read", 127)


PIECES = [MATRIX, TOPOLOGY, COMMAND_LINE, "$ lspci -tv", "> ", "```\n", "--More--", "\x0b", "[ 1.000000] x"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=30), max_size=12).map("".join))
def test_every_line_is_in_a_part_or_reported_or_blank(text: str) -> None:
    found = recognise(text)
    lines = text.split("\n")
    spans = [(p.first, p.last) for p in found.parts] + list(found.unrecognised)
    assert all(1 <= first <= last <= len(lines) for first, last in spans)
    assert all(0 < part.confidence <= 1 for part in found.parts)
    reported = {n for first, last in found.unrecognised for n in range(first, last + 1)}
    placed = {n for p in found.parts for n in range(p.first, p.last + 1)}
    assert not reported & placed


def test_time_grows_with_the_text_and_not_faster() -> None:
    block = f"$ nvidia-smi topo -p2p r\n{MATRIX}\nsome words\n{TOPOLOGY}\n"

    def seconds(times: int) -> float:
        start = time.process_time()
        recognise(block * times)
        return time.process_time() - start

    seconds(50)
    assert seconds(800) < 12 * max(seconds(200), 0.01)


# --- other people's outputs --------------------------------------------------------------------------

# Files by name, for what a reader exists; any of the readers is right.
KINDS = {
    "topo-m": ("guest.topo_matrix",),
    "topo-p2p-r.": ("guest.topo_p2p_read",),
    "topo-p2p-wr": ("guest.topo_p2p_read", "guest.topo_p2p_write"),
    "topo-p2p.": ("guest.topo_p2p_read",),
    "query-gpu": ("guest.gpus",),
    "nvidia-smi-q": ("guest.gpu_query",),
    "nvidia-smi-processes": ("guest.driver_version",),
    "lscpu": ("guest.cpu", "host.platform"),
    "lspci-tv": ("guest.pci_tree", "host.pci_tree"),
    "lspci-nn": ("guest.pci_devices",),
    "lspci.": ("guest.pci_devices",),
    "lspci-vvv-bridge": ("host.acs",),
    "qm-config": ("host.vms",),
    "qm-list": ("host.vms",),
    "qm-showcmd": ("host.qemu_running",),
    "qm-start": ("host.vfio",),
    "domain-hostdev": ("host.vms",),
    "qemu-commandline": ("host.vms",),
    "pci.cfg": ("host.pci_mappings",),
    "iommu-groups": ("host.iommu_groups",),
    "find-iommu-groups": ("host.iommu_groups",),
    "pvesh-hardware-pci": ("host.iommu_groups",),
    "pveversion": ("host.pve_version",),
    "status.": ("host.boot_loader",),
    "dmesg-iommu": ("host.iommu", "host.kernel_log"),
    "dmesg-host": ("host.iommu", "host.kernel_log"),
    "dmesg.host": ("host.vfio", "host.kernel_log"),
    "dmesg-T.host": ("host.vfio", "host.kernel_log"),
    "journalctl-k.host": ("host.kernel_log",),
    "dmesg-qemu": ("guest.dmi",),
    "dmesg-hyperv": ("guest.dmi",),
    "dmesg-wpr2": ("guest.dmesg",),
    "journal.de": ("guest.dmesg",),
    "gpu-health": ("guest.dmesg",),
    "nccl.log": ("guest.nccl_log",),
    "nccl-tests": ("bench.nccl_tests",),
    "p2pBandwidthLatencyTest": ("bench.p2p_bandwidth_latency",),
    "nvbandwidth": ("bench.p2p_bandwidth_latency",),
    "vllm-bench": ("bench.serving",),
    "sglang-bench": ("bench.serving",),
    "transferbench": ("bench.copy_table",),
}
# A tree without its root says nothing, and a line without its variable's name is anyone's.
NOT_READABLE = {"005-rtx3090x4-xeon-e5v4-cns-onerow/lspci-tv.txt"}


def _real() -> list[tuple[Path, tuple[str, ...]]]:
    found = []
    for path in sorted(CORPUS.glob("*/*")):
        kind = next((k for k in KINDS if path.name.startswith(k)), None)
        if kind and f"{path.parent.name}/{path.name}" not in NOT_READABLE:
            found.append((path, KINDS[kind]))
    return found


@needs_corpus
@pytest.mark.parametrize("hinted", [True, False], ids=["hint", "no hint"])
@pytest.mark.parametrize(("path", "readers"), _real(), ids=lambda v: getattr(v, "name", None))
def test_real_outputs_find_their_reader(path: Path, readers: tuple[str, ...], hinted: bool) -> None:
    found = recognise(clean(path.read_bytes()), None, path.name if hinted else "")
    assert set(_readers(found)) & set(readers), (_readers(found), found.unrecognised)


NCCL_TESTS = """\
# nThread 1 nGpus 4 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 graph: 1
#
# Using devices
#  Rank  0 Group  0 Pid   3120 on      box device  0 [0000:01:00] NVIDIA L40S
box:3120:3150 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1
box:3120:3150 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
#
#       size         count      type   redop    root     time   algbw   busbw #wrong
           8             2     float     sum      -1    16.42    0.00    0.00      0
box:3120:3150 [0] NCCL INFO threadThresholds 8/8/64
        1024           256     float     sum      -1    17.02    0.06    0.09      0
# Avg bus bandwidth    : 0.04
"""


@pytest.mark.parametrize("typed", ["", "$ ./build/all_reduce_perf -g 4\n"])
def test_what_the_library_says_between_the_rows_of_a_run_is_read_too(typed: str) -> None:
    items = {item.reader: item for item in read_raw((typed + NCCL_TESTS).encode(), role=None).items}
    assert items.keys() == {"bench.nccl_tests", "guest.nccl_log"}
    (reading,) = items["bench.nccl_tests"].readings
    assert reading.value is not None
    assert [row.size_bytes for row in reading.value.rows] == [8, 1024]
    assert reading.value.p2p is False
    assert all(row.graph and row.ranks == 4 for row in reading.value.rows)


def test_rows_below_another_run_do_not_get_its_settings() -> None:
    row = "        2048           512     float     sum      -1    99.00    0.02    0.03      0\n"
    text = f"$ all_reduce_perf -g 4\n{NCCL_TESTS}\n{row}"
    (item, *_) = read_raw(text.encode(), role=None).items
    first, second = (reading.value for reading in item.readings if reading.value)
    assert {row.ranks for row in first.rows} == {4}
    assert [(row.size_bytes, row.ranks, row.graph) for row in second.rows] == [(2048, 0, None)]


def test_two_matrices_under_one_kind_of_header_stay_apart() -> None:
    text = (
        "<details><summary>Peer access (topo -p2p w)</summary>\n\n"
        " \tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n\nLegend:\n\n  X    = Self\n</details>\n"
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-23\nGPU1\tPHB\t X \t0-23\n"
    )
    found = recognise(text)
    assert [part.reader for part in found.parts] == ["guest.topo_p2p_write", "guest.topo_matrix"]
    assert found.unrecognised == ()


@pytest.mark.parametrize(
    ("text", "fact", "said"),
    [
        ("$ cat /sys/class/dmi/id/{sys_vendor,product_name}\nQEMU\nPC\n", "guest.dmi", "QEMU PC"),
        ("$ lspci -vv -s 41:00.0 | grep Sta\n\tLnkSta:\tSpeed 8GT/s, Width x8\n", "guest.pcie_links", ":41:"),
        ("# pct config 200\nhostname: llm\nunprivileged: 1\n", "host.lxc", "id=200"),
    ],
)  # fmt: skip
def test_what_only_the_typed_command_says_is_read(text: str, fact: str, said: str) -> None:
    readings = [r for item in read_raw(text.encode(), role=None).items for r in item.readings]
    assert any(r.fact_id == fact and said in str(r.value) for r in readings)


def test_an_attention_backend_is_named_without_the_word() -> None:
    line = "(Worker_TP0 pid=1) INFO 11-20 10:10:20 [cuda.py:366] Using FLASHINFER attention backend out of "
    (item,) = read_raw(f"{line}potential backends: ['FLASHINFER']\n".encode(), role=None).items
    start = next(r.value for r in item.readings if r.fact_id == "guest.engine_start")
    assert start is not None
    assert start.attention_backend == "FLASHINFER"


def test_prose_below_a_blank_line_is_no_part_of_the_output_above() -> None:
    text = "$ numactl -H\navailable: 1 nodes (0)\nnode 0 cpus: 0 1\n\nnode 0 size: 9 MB\n\nAny ideas?\n"
    found = recognise(text)
    assert [(part.first, part.last) for part in found.parts] == [(2, 5)]
    assert found.unrecognised == ((7, 7),)


def test_an_options_line_is_no_command() -> None:
    text = (
        "# qm showcmd 128 --pretty\n/usr/bin/kvm \\\n  -id 128 \\\n  -machine 'type=q35' \\\n"
        "  -device 'vfio-pci,host=0000:41:00.0,id=hostpci0,bus=ich9-pcie-port-1,addr=0x0'\n"
    )
    (item,) = read_raw(text.encode(), role=None).items
    assert item.lines == (1, 5)
    commands = item.readings[0].value
    assert commands is not None
    command = commands[0]
    assert (command.vm_id, command.machine) == (128, "type=q35")


def test_a_full_listing_without_its_command_answers_all_its_questions() -> None:
    text = (
        "00:00.0 Host bridge: Intel Corporation 82G33/G31/P35/P31 Express DRAM Controller\n"
        "\tSubsystem: Red Hat, Inc. QEMU Virtual Machine\n"
        "01:00.0 3D controller: NVIDIA Corporation GB202GL (rev a1)\n"
        "\tRegion 1: Memory at 380000000000 (64-bit, prefetchable) [size=128G]\n"
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n"
        "\tCapabilities: [c8] Vendor Specific Information: Len=08 <?>\n"
        "\tCapabilities: [100 v1] Virtual Channel\n"
    )
    known = {
        reading.fact_id
        for item in read_raw(text.encode(), role=None).items
        for reading in item.readings
        if reading.kind == "known"
    }
    assert known >= {"guest.clique_capability", "guest.bars", "guest.pcie_links", "guest.pci_gpus"}
