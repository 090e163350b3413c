"""Properties of the readers of links, module options, topologies, containers, logs and telemetry."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import ReadingKind, View
from agents.framing import clean
from agents.parsing import containers, engine_log, gpu_monitor, lxc_config, modprobe, nccl_topology, pcie_link, vmx
from agents.probe import Output
from agents.probes import all_probes
from agents.raw_reading import read_raw
from tests.agents.probes import test_cases

pytestmark = pytest.mark.thorough

MINE = [f"guest.{n}" for n in ("driver_params", "driver_module", "module_config", "pcie_links")]
MINE += [f"guest.{n}" for n in ("software", "nccl_conf", "nccl_topology", "engine_containers")]
MINE += [f"guest.{n}" for n in ("engine_log", "gpu_monitor", "gpu_process_monitor")]
MINE += ["guest.environment_report"]
MINE += [f"host.{n}" for n in ("module_config", "pcie_links", "configured_cmdline", "numa")]
MINE += ["host.lxc", "host.vmx"]

SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}


@settings(max_examples=50)
@given(gen=st.sampled_from(sorted(SPEEDS)), width=st.sampled_from([1, 2, 4, 8, 16]), bus=st.integers(0, 255))
def test_a_link_reads_the_same_from_sysfs_and_lspci(gen: int, width: int, bus: int) -> None:
    speed = SPEEDS[gen]
    sysfs = f"0000:{bus:02x}:00.0 vendor=0x10de class=0x030200 speed={speed}_GT/s_PCIe width={width}"
    sysfs += " max_speed=64.0_GT/s_PCIe max_width=16"
    shown = speed.removesuffix(".0")
    lspci = f"{bus:02x}:00.0 3D controller [0302]: NVIDIA Corporation X [10de:2bb5] (rev a1)\n"
    lspci += "\t\tLnkCap:\tPort #0, Speed 64GT/s, Width x16, ASPM L1, Exit Latency L1 <16us\n"
    lspci += f"\t\tLnkSta:\tSpeed {shown}GT/s (downgraded), Width x{width} (ok)\n"
    (a,), _ = pcie_link.from_sysfs(sysfs)
    (b,), _ = pcie_link.from_lspci(lspci)
    assert a == b
    assert (a.gen, a.width, a.gen_max, a.width_max) == (gen, width, 6, 16)
    assert a.narrow is (width < 16)


@pytest.mark.parametrize("text", ["Unknown", "", "0", "255 GT/s", "1.5 GT/s", "GT/s"])
def test_what_is_no_link_speed(text: str) -> None:
    assert pcie_link.generation(text) is None


@pytest.mark.parametrize(("text", "lanes"), [("16", 16), ("x8", 8), ("0", None), ("63", None)])
def test_lanes(text: str, lanes: int | None) -> None:
    assert pcie_link.lanes(text) == lanes


NAME = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
VALUE = st.from_regex(r"[A-Za-z0-9:,;=._]{1,12}", fullmatch=True)


@settings(max_examples=50)
@given(options=st.lists(st.tuples(NAME, NAME, VALUE), min_size=1, max_size=6), quoted=st.booleans())
def test_module_options_read_back(options: list[tuple[str, str, str]], quoted: bool) -> None:
    quote = '"' if quoted else ""
    text = "\n".join(f"options {m.replace('_', '-')} {n}={quote}{v}{quote}" for m, n, v in options)
    found = modprobe.parse(text)
    assert found is not None
    assert [(o.module, o.name, o.value) for o in found[0].options] == options
    module, name, value = options[-1]
    assert found[0].value(module, name) == value


@settings(max_examples=50)
@given(depths=st.lists(st.integers(0, 3), min_size=1, max_size=8), cut=st.booleans())
def test_a_topology_reads_back_with_its_switches(depths: list[int], cut: bool) -> None:
    text = '<system version="1">\n <cpu numaid="1">\n'
    for gpu, depth in enumerate(depths):
        switches = [f'<pci busid="ffff:ff:{gpu:02x}.{level}" class="0x060400">' for level in range(depth)]
        text += "".join(switches)
        text += f'<pci busid="0000:{gpu:02x}:00.0" link_speed="32.0 GT/s PCIe" link_width="16">'
        text += f'<gpu dev="{gpu}" rank="{gpu}"><nvlink target="x" count="4"/></gpu></pci>'
        text += "</pci>" * depth + "\n"
    text += "" if cut else " </cpu>\n</system>\n"
    found = nccl_topology.parse(text)
    assert found is not None
    topology, lines, missing = found
    assert [len(gpu.switches) for gpu in topology.gpus] == depths
    assert {gpu.link for gpu in topology.gpus} == {"32.0 GT/s PCIe x16"}
    assert {gpu.nvlinks for gpu in topology.gpus} == {4}
    assert len(lines) == len(depths)
    assert missing is cut


@settings(max_examples=50)
@given(bus=st.integers(0, 255), device=st.integers(0, 31), function=st.integers(0, 7))
def test_vmware_writes_addresses_in_decimal(bus: int, device: int, function: int) -> None:
    shown = f"00000:{bus:03d}:{device:02d}.{function}"
    assert vmx.address(shown) == f"0000:{bus:02x}:{device:02x}.{function}"


@settings(max_examples=50)
@given(samples=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 700)), min_size=1, max_size=30))
def test_a_median_is_between_the_samples(samples: list[tuple[int, int]]) -> None:
    text = "# gpu    pwr     sm\n# Idx      W      %\n"
    text += "\n".join(f"    {gpu}    {watts}      -" for gpu, watts in samples)
    found, lines = gpu_monitor.parse(text)
    assert len(lines) == len(samples)
    for one in found:
        mine = [watts for gpu, watts in samples if str(gpu) == one.gpu]
        assert one.samples == len(mine)
        assert one.power_w is not None
        assert min(mine) <= one.power_w <= max(mine) == one.power_max_w
        assert one.busy_percent is None


def test_shares_above_one_are_not_believed() -> None:
    text = "#Entity   SMACT   DRAMA\nID\nGPU 0     41.2    0.5\n"
    (one,), _ = gpu_monitor.parse(text)
    assert (one.sm_active_percent, one.dram_percent) == (None, 50.0)


def test_secrets_of_a_container_stay_out() -> None:
    env = ["OPENAI_API_KEY=sk-aaaaaaaaaaaaaaaaaaaa", "VLLM_API_KEY=topsecret", "NCCL_DEBUG=INFO"]
    env += ["VLLM_ARGS=--hf-token hf_aaaaaaaaaaaaaaaaaaaaaaaa"]
    said = {"Name": "/x", "HostConfig": {"IpcMode": "host"}, "Config": {"Image": "vllm", "Env": env}}
    (one,), _, _ = containers.parse(json.dumps([said]))
    assert set(one.env) == {"NCCL_DEBUG", "VLLM_ARGS"}
    assert "hf_a" not in one.env["VLLM_ARGS"]


def test_a_flag_that_leaves_graphs_on_is_no_capture() -> None:
    asked = engine_log.parse("LLM engine (v0.11.0) with config: tp_size=2, enforce_eager=False")
    assert asked is not None
    assert asked[0].cuda_graphs is None
    happened = engine_log.parse("enforce_eager=False\nGraph capturing finished in 8 secs, took 1 GiB")
    assert happened is not None
    assert happened[0].cuda_graphs is True


def test_a_vm_is_no_container() -> None:
    assert lxc_config.parse("name: x\nhostpci0: 01:00,pcie=1\nmemory: 4096\n") == ((), ())


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["crlf", "coloured", "quoted", "prompted"])
@pytest.mark.parametrize("probe_id", MINE)
def test_the_recogniser_finds_the_good_case_however_it_was_pasted(probe_id: str, how: str) -> None:
    role = probe_id.partition(".")[0]
    others_too = {"guest.pcie_links", "guest.driver_module", "guest.software"}
    text = _good_case(probe_id)
    lines = text.splitlines()
    pasted = {
        "crlf": "\r\n".join(lines),
        "coloured": "\n".join(f"\x1b[1m{line}\x1b[0m" for line in lines),
        "quoted": "\n".join(f"> {line}" for line in lines),
        "prompted": "root@box:~# true\n" + text + "root@box:~# \n",
    }[how]
    found = read_raw(pasted.encode(), role=View(role)).items
    readers = {item.reader for item in found}
    assert probe_id in readers or (probe_id in others_too and found), readers


@cache
def _good_case(probe_id: str) -> str:
    """What its first well-formed case printed, one of the collector's before a pasted one."""
    folder = Path(test_cases.__file__).parent / probe_id.replace(".", "/")
    outputs = [test_cases._output(case) for case in sorted(folder.iterdir())]
    for output in sorted(outputs, key=lambda output: output.alternative < 0):
        first = all_probes()[probe_id].parse(output)[0]
        if first.kind is ReadingKind.KNOWN:
            return output.stdout
    raise AssertionError(probe_id)


_HOSTILE: dict[str, Callable[[int], str]] = {
    "one long line": lambda n: "options nvidia a=" + "b" * n * 20,
    "colons": lambda n: ("a: " * 50 + "\n") * (n // 50),
    "tags": lambda n: "<pci <cpu <gpu " * n,
    "attributes": lambda n: '<pci busid="a" ' * n,
    "open elements": lambda n: '<pci busid="0000:01:00.0">\n' * n,
    "braces": lambda n: '[{"HostConfig": ' * n,
    "samples": lambda n: "# gpu pwr sm\n" + "0 100 50\n" * n,
    "log": lambda n: "INFO Using Using Using backend tp_size=8 graph all_reduce\n" * n,
    "blanks": lambda n: (" " * 500 + "\n") * (n // 50),
    "container rows": lambda n: ('0123456789ab  a "b' + " Up " * 50 + "\n") * (n // 50),
    "pairs": lambda n: 'x.y = "z"\n' * n,
    "versions": lambda n: "[pip3] torch==2.0\n" * n,
}


@pytest.mark.thorough
@pytest.mark.parametrize("shape", _HOSTILE)
def test_large_hostile_text_takes_linear_time(shape: str) -> None:
    text = clean(_HOSTILE[shape](2_000).encode())
    for probe_id in MINE:
        began = time.process_time()
        readings = all_probes()[probe_id].parse(Output(text, "", None, -1))
        assert readings
        assert time.process_time() - began < 20, probe_id
