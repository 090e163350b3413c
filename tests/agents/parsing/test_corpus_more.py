"""Real outputs about driver options, links, versions, NCCL's topology and module configuration."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.facts import Fact, Reading, ReadingKind
from agents.facts.gpu import DRIVER_MODULE, DRIVER_PARAMS, HOST_PCIE_LINKS, PCIE_LINKS
from agents.facts.host import CONFIGURED_CMDLINE, HOST_CMDLINE
from agents.facts.nccl import NCCL_TOPOLOGY
from agents.facts.platform import HOST_MODULE_CONFIG, MODULE_CONFIG, NUMA_NODES, SOFTWARE
from agents.raw_reading import read_raw
from tests.corpus import CORPUS, needs_corpus

pytestmark = needs_corpus


def _case(number: str) -> Path:
    return next(CORPUS.glob(f"{number}-*"))


def _expect(number: str) -> dict[str, Any]:
    expect: dict[str, Any] = tomllib.loads((_case(number) / "case.toml").read_text())["expect"]
    return expect


@cache
def _readings(number: str, name: str) -> dict[str, Reading[Any]]:
    raw = (_case(number) / name).read_bytes()
    items = read_raw(raw, role=None, hint=name).items
    found = [r for item in items for r in item.readings]
    found.sort(key=lambda r: r.kind is ReadingKind.KNOWN)  # the last one of a fact counts
    return {r.fact_id: r for r in found}


def _value(number: str, name: str, fact: Fact[Any]) -> Any:
    reading = _readings(number, name)[fact.id]
    assert reading.kind is ReadingKind.KNOWN, reading.detail
    return reading.value


def test_a_virtual_topology_has_no_links_and_no_nodes() -> None:
    expect, topology = _expect("074"), _value("074", "nccl-topo.xml", NCCL_TOPOLOGY)
    assert len(topology.gpus) == expect["gpu_count"]
    assert topology.flat
    assert {gpu.link for gpu in topology.gpus} == {gpu.numa_node for gpu in topology.gpus} == {None}
    assert sum(gpu.nvlinks for gpu in topology.gpus) == expect["nvlink_elements"]
    assert {gpu.pci_address[:7] for gpu in topology.gpus} == {expect["all_on_bus"]}


def test_registry_keys_stand_in_the_options() -> None:
    config = _value("038", "nvidia-params.txt", MODULE_CONFIG)
    words = config.value("nvidia", "NVreg_RegistryDwords")
    assert words.split(";") == ["RMForceStaticBar1=1", "PeerMappingOverride=1"]


def test_a_module_that_dkms_built_need_not_be_loaded() -> None:
    reading = _readings("039", "dkms.txt")[DRIVER_MODULE.id]
    assert reading.value is not None
    assert reading.value.dkms[0].startswith("nvidia/580.178.04")
    assert reading.value.version is None
    assert not reading.complete


def test_devices_that_vfio_takes() -> None:
    config = _value("014", "modprobe-vfio.conf", HOST_MODULE_CONFIG)
    assert config.value("vfio_pci", "ids").split(",") == _expect("014")["vfio_ids"]
    assert "nouveau" in config.blacklisted
    retyped = _value("031", "modprobe-vfio.conf", HOST_MODULE_CONFIG)
    assert retyped.value("vfio_pci", "ids") == "1002:67ef,1002:aae0"


@pytest.mark.parametrize("number", ["014", "033"])
def test_what_grub_is_configured_to_pass(number: str) -> None:
    found = _value(number, "etc-default-grub.txt", CONFIGURED_CMDLINE)
    for key, value in _expect(number).get("iommu_cmdline", {"amd_iommu": "on"}).items():
        assert f"{key}={value}" in found.grub.split()
    assert not _readings(number, "etc-default-grub.txt")[HOST_CMDLINE.id].complete


def test_options_without_their_variable_are_of_unknown_origin() -> None:
    reading = _readings("031", "etc-default-grub.txt")[HOST_CMDLINE.id]
    assert reading.value is not None
    for key, values in _expect("031")["iommu_cmdline"].items():
        for value in [values] if isinstance(values, str) else values:
            assert f"{key}={value}" in reading.value.split()
    assert not reading.complete


def test_versions_of_an_engine_report() -> None:
    versions = _value("001", "check-env.txt", SOFTWARE)
    assert versions["torch"] == "2.11.0+cu130"
    assert versions["sglang"].startswith("0.0.0.dev1")
    assert "vllm" not in versions
    assert _value("044", "collect-env.txt", SOFTWARE)["vllm"].startswith("13b1.dev23")
    assert len(_value("044", "collect-env.txt", NUMA_NODES)) == _expect("044")["numa_nodes"]


@pytest.mark.parametrize(("name", "narrow"), [("bad", True), ("good", False)])
def test_lost_lanes_are_told_from_lowered_speed(name: str, narrow: bool) -> None:
    found = _readings("008", f"lspci-vvv-{name}.guest.txt")
    assert HOST_PCIE_LINKS.id not in found
    links = found[PCIE_LINKS.id].value
    assert links is not None
    (link,) = links
    assert (link.gen, link.narrow) == (1, narrow)
    assert link.pci_address is None


def test_a_parameter_alone() -> None:
    reading = _readings("041", "report.txt")[DRIVER_PARAMS.id]
    assert reading.value is not None
    assert reading.value.values == {"EnableResizableBar": "1"}
    assert not reading.complete


def test_no_other_output_holds_these_facts() -> None:
    """A file of another tool is not taken for one of these."""
    mine = {NCCL_TOPOLOGY.id: {"074"}, DRIVER_PARAMS.id: {"041"}, SOFTWARE.id: {"001", "044"}}
    mine |= {"guest.engine_containers": set(), "host.lxc": set(), "host.vmx": set()}
    mine |= {"bench.telemetry": set(), "bench.profile": set(), "bench.kernel_times": set()}
    for path in sorted(CORPUS.glob("*/*.*")):
        if path.name != "case.toml":
            for fact_id, reading in _readings(path.parent.name[:3], path.name).items():
                if fact_id in mine and reading.kind is ReadingKind.KNOWN:
                    assert path.parent.name[:3] in mine[fact_id], (path.name, fact_id)
