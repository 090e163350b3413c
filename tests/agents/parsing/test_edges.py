"""Where a reader decides between two values: each row is an input on one side, with what it must give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.facts.bench import Profile
from agents.parsing import (
    containers,
    copy_table,
    delivery_lines,
    gpu_monitor,
    json_text,
    kernel_lines,
    kernels,
    libvirt,
    modprobe,
    nccl_tests,
    nsys,
    nvbandwidth_json,
    payload_lines,
    profile_lines,
    qemu_command,
    qm_config,
    serving,
    serving_json,
    smi_csv,
    telemetry_lines,
    terminal,
    topo_matrix,
    vmx,
)
from agents.parsing.kernels import Kernel


def _payload(schema: str, *rows: dict[str, Any], device: str = "cuda") -> str:
    head = {"schema": schema, "environment": {"device": device}}
    return "\n".join(json.dumps(row) for row in (head, *rows, {"end": True}))


def test_a_check_without_a_size_has_none() -> None:
    row = {"source": "0", "destination": "1", "verdict": "failed", "mapping": "one process", "why": "no peer access"}
    (check,) = delivery_lines.parse(_payload(delivery_lines.SCHEMA, row)).checks
    assert (check.size_bytes, check.words) == (0, "0->1 (one process): failed, no peer access")


@pytest.mark.parametrize(("printed", "kept"), [(4000.0, True), (4150.0, True), (4400.0, False), (3600.0, False)])
def test_a_rate_that_its_bytes_and_time_do_not_give_is_left_out(printed: float, kept: bool) -> None:
    row = {
        "kernel": "copy",
        "gpu": "0",
        "size_bytes": 2 << 30,
        "moved_bytes": 4_000_000_000,
        "time_us": 1000.0,
        "timing": "device",
        "method": "queued",
        "gb_per_s": printed,
    }
    accepted = kernel_lines.memory(_payload(kernel_lines.MEMORY_SCHEMA, row)).rows
    assert [row.gb_per_s for row in accepted] == ([4000.0] if kept else [])


def test_a_gap_is_what_no_kernel_fills_and_an_overlap_counts_once() -> None:
    work = [Kernel("gemm", 0.0, 100.0), Kernel("gemm", 50.0, 100.0), Kernel("gemm", 250.0, 50.0)]
    profile = kernels.profile(work, 0.0, 400.0, 2)
    assert profile == Profile(0.0, 0.0, 0.0, 0.1, 0.1)


def test_a_registry_value_may_hold_an_equals_sign() -> None:
    assert modprobe.registry('"ForceP2P=0x11;Path=a=b; RMForceStaticBar1 = 1"') == {
        "ForceP2P": "0x11",
        "Path": "a=b",
        "RMForceStaticBar1": "1",
    }


@pytest.mark.parametrize(("algbw", "busbw", "ranks"), [("4.00", "7.00", 8), ("4.00", "7.03", 8), ("4.00", "6.30", 0)])
def test_ranks_are_told_by_the_factor_of_the_bus(algbw: str, busbw: str, ranks: int) -> None:
    text = (
        "# nccl-tests version 2.13.10\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
        f"     1048576        262144     float     sum      -1    262.1   {algbw}    {busbw}       0\n"
    )
    (table,) = nccl_tests.parse(text)
    assert {row.ranks for row in table.result().rows} == {ranks}


def test_smaller_sizes_after_larger_ones_are_another_run() -> None:
    head = "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
    row = "     {}        262144     float     sum      -1    20.0   1.00    1.75       0\n"
    tables = nccl_tests.parse(head + row.format(1024) + row.format(1024) + row.format(4096) + row.format(1024))
    assert [[size for size, *_ in table.rows] for table in tables] == [[1024, 1024, 4096], [1024]]


@pytest.mark.parametrize("rows", [[["N/A", 1.0], [2.0]], [["N/A", 1.0], "2.0"], []])
def test_a_matrix_that_is_not_square_is_none(rows: Any) -> None:
    test = {"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_matrix": rows}
    report = nvbandwidth_json.parse(json.dumps({"nvbandwidth": {"testcases": [test]}}))
    assert report is None or not report.matrices


def test_a_kernel_without_a_known_name_or_with_negative_time_is_left_out() -> None:
    rows: list[dict[str, Any]] = [
        {"kernel_name": 1, "text": "gemm_a"},
        {"kernels": [[1, 0, 10.0, 5.0], [2, 0, 20.0, 5.0], [1, 0, 30.0, -1.0], [1, 0, 40.0, 0.0], ["1", 0, 50.0, 5.0]]},
    ]
    trace = profile_lines.parse(_payload(profile_lines.SCHEMA, *rows)).trace
    assert trace is not None
    assert trace.times.kernels == 2


def test_only_the_smbios_table_of_the_system_names_the_vm() -> None:
    disk, system = "0b54c6a8-1111-4222-8333-444455556666", "9d0a5f8e-7777-4888-9999-aaaabbbbcccc"
    line = f"/usr/bin/kvm -id 101 -smbios type=2,serial={disk} -smbios type=1,uuid={system} -machine q35"
    (command,) = qemu_command.parse(line)
    assert command.command.uuid == system


def test_a_row_of_the_list_holds_the_memory_and_not_the_disk() -> None:
    listing = "      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID\n"
    (vm,) = qm_config.parse(listing + "       204 -                    running    442368            96.00 4711\n")
    assert (vm.id, vm.name, vm.running, vm.memory_mib) == (204, None, True, 442368)


@pytest.mark.parametrize(
    ("config", "concurrency"),
    [
        ({"loadgen": {"concurrency": 8}}, 8),
        ({"loadgen": {"concurrency": 0}, "concurrency": 4}, 4),
        ({"perf_analyzer": {"stimulus": {"concurrency": 16}}}, 16),
        ({}, None),
    ],
)
def test_concurrency_is_the_first_that_is_set(config: dict[str, Any], concurrency: int | None) -> None:
    report = {
        "input_config": config,
        "output_token_throughput": {"unit": "tokens/sec", "avg": 220.0},
        "request_count": {"avg": 40},
        "inter_token_latency": {"unit": "ms", "avg": 36.0},
    }
    rows, _, _ = serving_json.parse(json.dumps(report))
    assert [row.concurrency for row in rows] == [concurrency]


def test_rows_without_a_header_need_a_sign_of_a_gpu() -> None:
    assert smi_csv.parse("0, NVIDIA L40S, 46068 MiB, 72.1\n1, NVIDIA L40S, 46068 MiB, 70.3\n") is not None
    assert smi_csv.parse("0, 1, 2, 3\n4, 5, 6, 7\n") is None


@pytest.mark.parametrize("cells", [[0, 50.0], [0, 50.0, 100.0, 9.0], {"gpu": 0}, "0"])
def test_a_sample_with_other_columns_than_the_head_is_no_row(cells: Any) -> None:
    head = {"telemetry": ["gpu", "busy_percent", "power_w"], "every_s": 1.0}
    looks = [{"at_s": 1.0, "gpus": [[0, 80.0, 300.0]]}, {"at_s": 2.0, "gpus": [cells]}]
    payload = payload_lines.read(_payload("peerpath.any/1", head, *looks), "peerpath.any/1")
    (gpu,), lines = telemetry_lines.parse(payload)
    assert (gpu.power_w, lines) == (300.0, (3,))


def test_throttling_is_counted_over_the_samples_that_tell_it() -> None:
    head = {"telemetry": ["gpu", "throttle_bits"], "every_s": 1.0}
    samples = [{"at_s": float(at), "gpus": [[0, bits]]} for at, bits in enumerate((0, 0x20, 0x24, 0x1))]
    payload = payload_lines.read(_payload("peerpath.any/1", head, *samples), "peerpath.any/1")
    (gpu,), _ = telemetry_lines.parse(payload)
    assert (gpu.throttled_percent, gpu.throttle_reasons) == (50.0, ("software power cap", "software thermal slowdown"))


def test_a_wrapped_row_goes_on_until_every_column_is_there() -> None:
    text = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNODE\t0-31\n\t0\tN/A\n"
        "GPU1\tNODE\t X \t0-31\t0\tN/A\n"
    )
    topology = topo_matrix.parse(text)
    assert topology is not None
    assert (dict(topology.numa), topology.missing) == ({"GPU0": "0", "GPU1": "0"}, ())


def test_a_second_display_name_opens_the_next_file_and_a_second_key_does_not() -> None:
    text = 'memSize = "1024"\nmemSize = "2048"\ndisplayName = "one"\ndisplayName = "two"\nmemSize = "4096"\n'
    configs, lines = vmx.parse(text)
    assert [(config.name, config.memory_mib) for config in configs] == [("one", 2048), ("two", 4096)]
    assert lines == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("text", "values"),
    [("}{", ()), ("x } y", ()), ("{}", ((1, {}),)), ('a\n{"b": 1} tail', ((2, {"b": 1}),)), ("{", ())],
)
def test_json_is_whole_or_not_there(text: str, values: tuple[tuple[int, Any], ...]) -> None:
    assert json_text.values(text) == values


def test_each_process_of_a_gpu_is_listed_once() -> None:
    text = (
        "# gpu         pid   type     sm    mem    enc    dec    command\n"
        "# Idx           #    C/G      %      %      %      %    name\n"
        "    0       2211     C     90     40      -      -    python3\n"
        "    0       2211     C     10      2      -      -    python3\n"
        "    1       2212     C      0      0      -      -    python3\n"
        "    2          -     -      -      -      -      -    -\n"
    )
    assert gpu_monitor.processes(text) is not None
    processes, lines = gpu_monitor.processes(text) or ((), ())
    assert [(process.gpu_index, process.pid) for process in processes] == [(0, 2211), (1, 2212)]
    assert lines


@pytest.mark.parametrize(("status", "words"), [("Error", "Error"), ("", "no matrix")])
def test_a_test_without_a_matrix_has_failed_with_its_status(status: str, words: str) -> None:
    test = {"name": "device_to_device_memcpy_read_ce", "status": status}
    report = nvbandwidth_json.parse(json.dumps({"nvbandwidth": {"testcases": [test]}}))
    assert report is not None
    assert report.failed == (f"device_to_device_memcpy_read_ce: {words}",)


@pytest.mark.parametrize(("errors", "lost"), [(1, False), (2, False), (4, True)])
def test_a_gpu_is_lost_when_half_of_what_it_was_asked_are_errors(errors: int, lost: bool) -> None:
    cells = [*["[Unknown Error]"] * errors, *["55"] * (6 - errors)]
    text = (
        "index, name, temperature.gpu, power.draw [W], clocks.sm [MHz], utilization.gpu [%], memory.used [MiB]\n"
        f"3, {', '.join(cells)}\n"
    )
    table = smi_csv.parse(text)
    assert table is not None
    assert table.gpus[0].lost is lost


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000:065:00.0", "0000:41:00.0"),
        ("00000:256:00.0", None),
        ("00000:065:32.0", None),
        ("00000:065:00.8", None),
        ("0000:41:00.0", None),
    ],
)
def test_addresses_of_a_vmx_file_are_decimal_and_in_range(text: str, address: str | None) -> None:
    assert vmx.address(text) == address


def test_an_empty_line_of_a_programs_heading_is_no_prompt() -> None:
    kinds = [line.kind for line in terminal.read(["#", "# nccl-tests version 2.13.10", "#", "", "#", "uname -r"])]
    assert kinds[0] is kinds[2] is terminal.Kind.BLANK
    assert kinds[4] is terminal.Kind.PROMPT


def test_the_program_of_a_json_report_is_named_by_its_arguments() -> None:
    row = {"size": 1048576, "out_of_place": {"time": 100.0, "alg_bw": 10.0, "bus_bw": 17.5, "nwrong": 0}}
    report = {"args": ["./build/all_reduce_perf", "-b", "1M"], "env": [], "results": [row]}
    (table,) = nccl_tests.parse(json.dumps(report))
    assert table.collective == "all_reduce"


def test_each_column_of_dmon_has_its_unit() -> None:
    text = (
        "# gpu    pwr  gtemp     sm    mem   pclk  rxpci  txpci     fb\n"
        "# Idx      W      C      %      %    MHz   MB/s   MB/s     MB\n"
        + "    0    330     62     97     41   2400  12000   8000  91000\n"
        * 3
    )
    (gpu,), lines, *_ = gpu_monitor.parse(text)
    assert (gpu.power_w, gpu.temperature_celsius, gpu.sm_clock_mhz) == (330, 62, 2400)
    assert (gpu.busy_percent, gpu.memory_busy_percent, gpu.memory_used_mib) == (97, 41, 91000)
    assert (gpu.pcie_rx_gb_per_s, gpu.pcie_tx_gb_per_s) == (12.0, 8.0)
    assert lines == (3, 4, 5)


_UNITS = {
    "b": 1 << 36,
    "bytes": 1 << 36,
    "KiB": 1 << 26,
    "k": 1 << 26,
    "MiB": 1 << 16,
    "m": 1 << 16,
    "GiB": 64,
    "g": 64,
}


@pytest.mark.parametrize(("unit", "count", "mib"), [*((u, n, 1 << 16) for u, n in _UNITS.items()), ("TiB", 2, 1 << 21)])
def test_memory_of_a_domain_is_in_its_unit(unit: str, count: int, mib: int) -> None:
    text = f"<domain type='kvm'>\n  <name>one</name>\n  <memory unit='{unit}'>{count}</memory>\n</domain>\n"
    (vm,) = libvirt.parse(text)
    assert vm.memory_mib == mib


def test_a_power_brake_is_told() -> None:
    head = {"telemetry": ["gpu", "throttle_bits"], "every_s": 1.0}
    samples = [{"at_s": float(at), "gpus": [[0, 0x88]]} for at in range(4)]
    payload = payload_lines.read(_payload("peerpath.any/1", head, *samples), "peerpath.any/1")
    (gpu,), _ = telemetry_lines.parse(payload)
    assert gpu.throttle_reasons == ("hardware slowdown", "power brake")


@pytest.mark.parametrize(
    ("head", "row", "read"),
    [
        ("Start (ns),Duration (ns),CorrId,Device,Name", "0,1000,1,0,gemm", True),
        ("Start (ns),Duration (ns),CorrId,Strm,Name", "0,1000,1,0,gemm", False),
        ("Start (ns),Duration (ns),Strm,Device,Name", "0,1000,1,0,gemm", False),
        ("Time (%),Total Time (ns),Instances,Avg (ns),Name", "50.0,1000,2,500,gemm", True),
        ("Time (%),Total Time (ns),Num Calls,Avg (ns),Name", "50.0,1000,2,500,cudaLaunchKernel", False),
    ],
)
def test_a_table_of_kernels_is_told_from_others(head: str, row: str, read: bool) -> None:
    assert (nsys.parse(f"{head}\n{row}\n") is not None) is read


def test_steps_are_told_by_marks_of_the_device_with_most_kernels() -> None:
    kernel = {"kernels": [[1, 0, at * 100.0, 60.0] for at in range(40)]}
    marks = {"marks": [["execute_context_0(0)_generation_1(1)", 0, 7, at * 400.0] for at in range(10)]}
    stray = {"marks": [["no step at all", 0, 7, 5.0], ["execute_context_0(0)_generation_1(1)", 1, 7, None]]}
    text = _payload(profile_lines.SCHEMA, {"kernel_name": 1, "text": "gemm"}, {"rank": 3}, kernel, marks, stray)
    trace = profile_lines.parse(text).trace
    assert trace is not None
    assert (trace.device, trace.rank) == ("0", 3)
    profile = trace.steps.profile
    assert profile is not None
    assert [profile.nccl_ms, profile.other_ms, profile.gaps_ms] == pytest.approx([0.0, 0.24, 0.16])


@pytest.mark.parametrize(
    ("line", "size", "time_us", "rate"),
    [
        ("GPU0 -> GPU1 4 MB 100.0 us 41.94 GB/s", 4 << 20, 100.0, 41.94),
        ("GPU0 -> GPU1 4 MiB 100.0 us", 4 << 20, 100.0, 41.94304),
        ("GPU0 -> GPU1 4 MiB 41.94304 GB/s", 4 << 20, 100.0, 41.94304),
        ("GPU0 -> GPU1 4 MB 41.94304 GB/s", 4 << 20, 100.0, 41.94304),
        ("GPU0 -> GPU1 4000000 bytes 100.0 us", 4_000_000, 100.0, 40.0),
    ],
)
def test_of_size_time_and_rate_two_give_the_third(line: str, size: int, time_us: float, rate: float) -> None:
    (row,) = copy_table.parse(f"{line}\n").rows
    assert [row.size_bytes, row.time_us, row.gb_per_s] == pytest.approx([size, time_us, rate])


def test_one_unit_of_a_text_counts_for_its_rows_with_a_single_figure() -> None:
    text = "GPU0 -> GPU1 1 MB 25.0 us 40.0 GB/s\nGPU0 -> GPU1 8 MB 200.0 us\n"
    assert [row.size_bytes for row in copy_table.parse(text).rows] == [1_000_000, 8_000_000]


def test_a_command_goes_on_below_a_backslash_and_ends_where_none_is() -> None:
    text = (
        "/usr/bin/kvm -id 101 -machine q35 \\\n"
        "    -device vfio-pci,host=0000:41:00.0,id=hostpci0 \\\n"
        "    -m 4096\n"
        "-name later\n"
        "some other line\n"
        "-uuid 9d0a5f8e-7777-4888-9999-aaaabbbbcccc\n"
    )
    first = qemu_command.parse(text)[0]
    assert first.lines == (1, 2, 3, 4)
    assert [device.id for device in first.command.devices] == ["hostpci0"]
    assert first.command.uuid is None


def test_a_value_below_a_backslash_belongs_to_its_option() -> None:
    text = "/usr/bin/kvm -id 101 -cpu \\\nhost,kvm=off \\\n-m 4096\nhost,kvm=on\n"
    (command,) = qemu_command.parse(text)
    assert command.lines == (1, 2, 3)


def test_words_one_a_line_end_where_a_program_is_named() -> None:
    device = "vfio-pci,host=0000:41:00.0,id=hostpci0"
    text = f"/usr/bin/kvm\n-id\n101\n-device\n{device}\n-name\nkvm\n/usr/bin/kvm\n-id\n102\n-device\n{device}\n"
    assert [command.command.vm_id for command in qemu_command.parse(text)] == [101, 102]


@pytest.mark.parametrize(
    ("entry", "ids"),
    [
        ({"vmid": 128, "status": "running", "maxmem": 463856467968, "name": "one"}, [128]),
        ({"vmid": 128, "status": "running"}, [128]),
        ({"key": "machine", "value": "q35", "digest": "x"}, []),
        ({"value": "q35"}, []),
    ],
)
def test_objects_of_pvesh_are_told_by_their_keys(entry: dict[str, Any], ids: list[int]) -> None:
    vms = qm_config.parse(f"pvesh get /nodes/one/qemu --output-format json\n{json.dumps([entry])}\n")
    assert [vm.id for vm in vms] == ids
    if entry.get("maxmem"):
        assert vms[0].memory_mib == 442368


@pytest.mark.parametrize(
    ("host", "shm_mib"),
    [
        ({"ShmSize": 67108864, "IpcMode": "private"}, 64),
        ({"ShmSize": 67108864, "IpcMode": "host"}, None),
        ({"ShmSize": 0, "IpcMode": "private"}, None),
        ({"IpcMode": "private"}, None),
    ],
)
def test_shared_memory_of_a_container_counts_where_it_is_its_own(host: dict[str, Any], shm_mib: int | None) -> None:
    entry = {"Name": "/engine", "HostConfig": host, "Config": {"Image": "vllm/vllm-openai:v0.26"}}
    text = json.dumps([entry])
    assert containers.is_inspect(text)
    assert not containers.is_inspect("CONTAINER of something\n")
    (container,), _, _ = containers.parse(text)
    assert (container.name, container.shm_mib) == ("engine", shm_mib)


def test_a_pair_with_every_way_tried_is_not_missing() -> None:
    common = {"source": "0", "destination": "1", "verdict": "right", "mapping": "one_process", "size_bytes": 4096}
    rows = [{**common, "method": method} for method in sorted(delivery_lines.METHODS)]
    whole = delivery_lines.parse(_payload(delivery_lines.SCHEMA, *rows))
    assert (whole.pairs, whole.missing) == ({"0->1": True}, ())
    part = delivery_lines.parse(_payload(delivery_lines.SCHEMA, *rows[:1]))
    assert (part.pairs, part.missing) == ({}, ("0->1: not every way was tried",))


def test_a_rom_without_a_bar_says_nothing_of_it() -> None:
    text = (
        "<domain type='kvm'>\n  <name>one</name>\n  <os><type machine='pc-q35-9.0'>hvm</type></os>\n  <devices>\n"
        "    <hostdev mode='subsystem' type='pci'>\n      <source>\n"
        "        <address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/>\n      </source>\n"
        "      <rom file='card.rom'/>\n"
        "      <address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/>\n"
        "    </hostdev>\n  </devices>\n</domain>\n"
    )
    (vm,) = libvirt.parse(text)
    assert [(device.addresses, device.rombar) for device in vm.hostpci] == [(("0000:41:00.0",), None)]
    assert not vm.filtered
    (part,) = libvirt.parse(text.replace("<type machine='pc-q35-9.0'>hvm</type>", ""))
    assert part.filtered


@pytest.mark.parametrize(("output", "kept"), [(100.0, True), (104.0, True), (130.0, False), (70.0, False)])
def test_a_rate_that_tokens_and_duration_do_not_give_is_left_out(output: float, kept: bool) -> None:
    report = {"output_throughput": output, "total_output_tokens": 10_000, "duration": 100.0, "completed": 40}
    rows, _, left_out = serving_json.parse(json.dumps(report))
    assert (len(rows), len(left_out)) == ((1, 0) if kept else (0, 1))


def test_a_comment_of_a_configuration_is_no_line_of_it() -> None:
    text = "### /etc/pve/qemu-server/101.conf\n#cores: 4\n\ncores: 8\nmemory: 4096\nmachine: q35\n"
    (vm,) = qm_config.parse(text)
    assert vm.config == {"cores": "8", "memory": "4096", "machine": "q35"}


def test_a_serving_block_keeps_its_first_finite_values_and_its_printed_limit() -> None:
    text = """$ vllm bench serve --max-concurrency 4
============ Serving Benchmark Result ============
Successful requests:                     32
Maximum request concurrency:             8
Output token throughput (tok/s):         410.50
Median TPOT (ms):                        nan
Mean TPOT (ms):                          9.50
P99 TTFT (ms):                           inf
Output token throughput (tok/s):         1.00
==================================================
"""
    (row,), _ = serving.parse(text)
    assert (row.concurrency, row.output_tokens_per_s, row.time_per_output_token_ms, row.ttft_p99_ms) == (
        8,
        410.5,
        9.5,
        None,
    )
    without_limit = text.replace("Maximum request concurrency:             8\n", "")
    assert serving.parse(without_limit)[0][0].concurrency == 4
