"""Which line a value was read from, which of two lines it belongs to, and what a near miss is not taken for."""

from __future__ import annotations

import pytest

from agents.parsing import lxc_config, nsys, numa, pvesh, qemu_command, smi_table, virt_signs

HEAD = "| NVIDIA-SMI 595.45.04              Driver Version: 595.45.04      CUDA Version: 13.2     |"
TABLE = f"""Tue Mar  3 09:12:44 2026
+-----------------------------------------------------------------------------------------+
{HEAD}
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA RTX PRO 6000 Blac...    On  |   00000000:01:00.0 Off |                    0 |
| N/A   61C    P0            331W /  600W |   88211MiB /  97887MiB |    100%      Default |
|                                         |                        |             Disabled |
|   1  NVIDIA RTX PRO 6000 Blac...    Off |   00000000:02:00.0 Off |                    0 |
| N/A   47C    P0            229W /  450W |      11MiB /  97887MiB |      9%      Default |
|                                         |                        |              Enabled |
|   2  NVIDIA RTX PRO 6000 Blac...    On  |   00000000:03:00.0 Off |                    0 |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|    0   N/A  N/A            4211      C   sglang::scheduler_TP0                 88204MiB |
|    1   N/A  N/A            4212      G   Xorg                                       N/A |
+-----------------------------------------------------------------------------------------+
"""


def test_every_value_of_the_boxed_table_has_its_own_line() -> None:
    table = smi_table.parse(TABLE)
    assert table
    assert (table.driver, table.cuda) == (("595.45.04", 3), ("13.2", 3))
    assert table.gpu_lines == (5, 6, 8, 9, 11, 12)
    assert [(g.temperature_celsius, g.power_w, g.power_limit_w) for g in table.gpus] == [
        *((61, 331, 600), (47, 229, 450)), (None, None, None)
    ]  # fmt: skip
    assert [(g.memory_used_mib, g.utilisation_percent) for g in table.gpus] == [(88211, 100), (11, 9), (None, None)]
    assert [(g.mig, g.persistence) for g in table.gpus] == [(False, True), (True, False), (None, True)]
    assert [g.lost for g in table.gpus] == [False, False, False]
    assert table.processes
    assert [(p.gpu_index, p.pid, p.name, p.memory_used_mib) for p in table.processes] == [
        *((0, 4211, "sglang::scheduler_TP0", 88204), (1, 4212, "Xorg", None))
    ]
    assert table.process_lines == (14, 15)


def test_a_head_that_a_paste_broke_is_one_and_a_version_without_a_head_is_none() -> None:
    cut = HEAD.index("Driver")
    first, second = HEAD[:cut], HEAD[cut:]
    broken = smi_table.parse(f"x\n{first}\n{second}\n")
    assert broken
    assert (broken.driver, broken.cuda) == (("595.45.04", 2), ("13.2", 2))
    last = smi_table.parse(f"{second}\n{HEAD}")
    assert last
    assert last.driver == ("595.45.04", 2)
    assert smi_table.parse(second) is None
    assert smi_table.parse(f"{first}\nx\n{second}") is None, "two lines, not three"


def test_rows_of_one_gpu_alone_are_what_follows_it() -> None:
    lines = TABLE.splitlines()
    table = smi_table.parse("\n".join([lines[4], lines[7], lines[8]]))
    assert table
    assert table.gpu_lines == (1, 2, 3)
    assert [gpu.index for gpu in table.gpus] == [0, 1]
    alone = smi_table.parse(f"x\n{lines[4]}\n")
    assert alone
    assert alone.gpu_lines == (2,), "nothing follows it"
    dead = smi_table.parse(f"{lines[4]}\n| ERR!  ERR! ERR!             N/A /  N/A |          N/A /  N/A |  N/A |\n")
    assert dead
    assert dead.gpus[0].lost, "three cells of a row are what a lost GPU shows"


def test_numa_nodes_name_their_lines_and_what_is_missing() -> None:
    text = "available: 4 nodes (0-3)\n\nnode 0 cpus: 0 1 2 8\nnode 0 size: 64215 MB\nnode 1 cpus: 3\n"
    nodes = numa.parse(text + "Node 1 MemTotal:   2097152 kB\n")
    assert nodes
    assert [(n.id, n.cpus, n.memory_mib) for n in nodes[0]] == [(0, "0-2,8", 64215), (1, "3", 2048)]
    assert nodes[1:] == ((3, 5), ("2 of 4 nodes",))
    complete = numa.parse(text.replace("4 nodes", "2 nodes"))
    assert complete
    assert complete[2] == ()


@pytest.mark.parametrize(
    ("text", "ranges"),
    [("0-3, 8", "0-3,8"), ("0-3,8-9", "0-3,8-9"), ("7", "7"), ("0 1", "0-1"), ("0 2", "0,2"), ("2 1 1", "1-2")],
)
def test_lists_of_cpus_and_lists_of_ranges(text: str, ranges: str) -> None:
    assert numa.ranges(text) == ranges


def test_as_many_cpus_as_linux_has_are_one_range() -> None:
    nodes = numa.parse(f"node 0 cpus: {' '.join(map(str, range(8192)))}\n")
    assert nodes
    assert nodes[0][0].cpus == "0-8191"


@pytest.mark.parametrize(("line", "unprivileged"), [("unprivileged: 1", True), ("unprivileged: 0", False), ("", None)])
def test_a_container_is_privileged_as_its_line_says(line: str, unprivileged: bool | None) -> None:
    text = f"# /etc/pve/lxc/204.conf\nhostname: llm\nrootfs: local:204/disk\n{line}\ndev0: /dev/nvidia0,gid=44\n"
    (containers, lines) = lxc_config.parse(text + "[before]\nhostname: old\nunprivileged: 1\n")
    assert [(c.id, c.name, c.unprivileged, c.gpu_devices) for c in containers] == [
        (204, "llm", unprivileged, ("/dev/nvidia0",))
    ]
    assert lines == ((2, 3, 4, 5) if line else (2, 3, 5))


def test_a_line_of_a_container_is_read_to_its_two_thousandth_letter() -> None:
    text = f"# /etc/pve/lxc/204.conf\nrootfs: {'x' * 1992}\nhostname: {'y' * 1991}\n"
    ((container,), _) = lxc_config.parse(text)
    assert (len(container.config["rootfs"]), len(container.config["hostname"])) == (1992, 1990)


def test_a_sign_of_a_hypervisor_is_the_first_and_has_its_line() -> None:
    signs = virt_signs.parse("\nx\nkvm\nnone\n")
    assert signs.answers == {virt_signs.DETECTED: "kvm"}
    assert signs.where(virt_signs.DETECTED, "nothing") == (3,)


def test_a_table_of_pvesh_is_its_rows_and_an_object_its_pairs() -> None:
    table = "┌─────┬───────┐\n│ key │ value │\n│ memory │ 2048 │\n"
    assert list(pvesh.lines(table)) == [
        *((1, "┌─────┬───────┐"), (2, "│ key │ value │"), (3, "memory: 2048"))
    ]  # fmt: skip
    listed = '[{"vmid":128,"status":"running","name":"llm","maxmem":2147483648},\n{"vmid":9,"status":"stopped"}]\nend'
    assert list(pvesh.lines(listed)) == [(1, "128 llm running 2048 0.00"), (2, "9 - stopped 0 0.00"), (3, "end")]
    pending = '{"key":"cpu","value":"kvm64","pending":"host"}\n{"key":"numa","delete":1}'
    assert list(pvesh.lines(pending)) == [(1, "cur cpu: kvm64"), (1, "new cpu: host"), (2, "del numa:")]
    assert list(pvesh.lines('{"upid":"x"}')) == [(1, '{"upid":"x"}')]


def test_a_command_line_goes_on_after_a_backslash_and_ends_without_one() -> None:
    start = "/usr/bin/kvm -id 7 -machine q35"
    (goes_on,) = qemu_command.parse(f"{start}\n-device \\\nvfio-pci,host=0000:1b:00.0,id=gpu0\n")
    assert [device.host_address for device in goes_on.command.devices] == ["0000:1b:00.0"]
    assert goes_on.lines == (1, 2, 3)
    (ends,) = qemu_command.parse(f"{start} \\\n-cpu host\nvfio-pci,host=0000:1b:00.0,id=gpu0\n")
    assert (ends.command.cpu, ends.lines, ends.command.devices) == ("host", (1, 2), ())


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ('{"key": "cores", "value": "8"}', ["cur cores: 8"]),
        ('{"key": "cores", "value": "8", "pending": "16"}', ["cur cores: 8", "new cores: 16"]),
        ('{"key": "args", "value": "-x", "pending": "-y", "delete": 1}', ["cur args: -x", "new args: -y", "del args:"]),
        ('{"key": "args", "value": "-x", "colour": "red"}', []),
    ],
)
def test_a_pending_change_of_pvesh_is_its_old_and_its_new_line(value: str, lines: list[str]) -> None:
    assert [line for _, line in pvesh.lines(value) if line != "end"][: len(lines)] == lines


def test_durations_without_a_head_are_no_kernels() -> None:
    assert nsys.parse("  12.5   1000000   100   10000.0   ncclDevKernel_AllReduce\n") is None
