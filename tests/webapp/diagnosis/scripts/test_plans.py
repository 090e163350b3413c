"""What each phase sets, read from the plan without running anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.gpu import BAR_FAILURES, GPU_COUNT_PCI, GPU_COUNT_SMI, BarFailure
from agents.facts.host import GPU_PATHS, IOMMU_GROUPS, PCI_MAPPINGS, PLATFORM, GpuPath, IommuGroup, PciMapping, Platform
from agents.facts.nccl import ENGINE, NCCL_ENV, NCCL_TRANSPORTS, Engine, NcclTransports
from agents.facts.p2p import P2pCode
from agents.facts.platform import HOST_NUMA_NODES, VIRT_KIND, NumaNode
from agents.facts.vm import VMS, Vm
from agents.facts.workload import PARALLELISM, Parallelism
from agents.parsing import qm_config
from tests.standin.pve_host import ADDRESSES, KPRO6
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from tests.webapp.diagnosis.scenarios import SCENARIOS
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.scripts import Do, PhaseScript, ScriptError, clique_instructions, phase_script

WHOLE = qm_config.parse(f"### /etc/pve/qemu-server/128.conf\n{KPRO6}cpu: host\n")[0]
CLIQUES = " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=0" for i in range(8))


def vm(**config: str) -> Reading[Any]:
    """The founding case's VM with some lines in place of its own; "" takes one out."""
    lines = {**WHOLE.config, **{key.replace("_", "-"): value for key, value in config.items()}}
    kept = {key: value for key, value in lines.items() if value}
    devices = tuple(
        device
        for key, value in kept.items()
        if key.startswith("hostpci") and (device := qm_config.hostpci(int(key[7:]), value))
    )
    found = replace(
        WHOLE, config=kept, hostpci=devices, args=kept.get("args"), cpu=kept.get("cpu"),
        machine=kept.get("machine"), bios=kept.get("bios"), hugepages=kept.get("hugepages"),
    )  # fmt: skip
    return VMS.known((found,), lines=(1,))


def made(phase: str, *readings: Reading[Any], code: P2pCode = P2pCode.NS) -> PhaseScript:
    return phase_script(facts_of(*kvm_guest(code), *readings), phase, Do.APPLY)


def new_values(script: PhaseScript) -> Sequence[str]:
    return [change.partition(" → ")[2] for change in script.changes]


def raw(**options: str) -> dict[str, str]:
    return {f"hostpci{i}": f"{ADDRESSES[i]}{options.get(f'h{i}', '')}" for i in range(8)}


def test_a_clique_on_some_is_joined_by_the_others() -> None:
    have = " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=3" for i in range(4))
    script = made("P2", vm(args=f"-snapshot {have}"))
    more = " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=3" for i in range(4, 8))
    assert new_values(script) == [f"-snapshot {have} {more}"]


def test_a_network_card_beside_the_gpus_gets_no_clique() -> None:
    card = IommuGroup(5, ("0000:05:00.0",), ("05:00.0 Ethernet controller: Mellanox",))
    script = made("P2", vm(hostpci8="0000:05:00.0"), IOMMU_GROUPS.known((card,), lines=(1,)))
    assert new_values(script) == [CLIQUES]


def test_sockets_of_intel_get_a_clique_each() -> None:
    paths = [GpuPath(a, "0000:00", numa_node=i // 4) for i, a in enumerate(ADDRESSES)]
    intel = PLATFORM.known(Platform(cpu="Intel(R) Xeon(R) Platinum 8480+", sockets=2), lines=(1,))
    amd = PLATFORM.known(Platform(cpu="AMD EPYC 9335", sockets=2), lines=(1,))
    known = GPU_PATHS.known(tuple(paths), lines=(1,))
    script = made("P2", vm(**raw()), known, intel)
    assert "hostpci3.x-nv-gpudirect-clique=0" in new_values(script)[0]
    assert "hostpci4.x-nv-gpudirect-clique=1" in new_values(script)[0]
    assert new_values(made("P2", vm(**raw()), known, amd)) == [CLIQUES]
    pool = tuple(PciMapping("pro6000", "kpro6", a, "10de:2bb5") for a in ADDRESSES)
    with pytest.raises(ScriptError, match="a mapping of its own"):
        made("P2", vm(), known, intel, PCI_MAPPINGS.known(pool, lines=(1,)))


def test_kvm_is_shown_again() -> None:
    script = made("P2", vm(cpu="host,hidden=1,flags=+pdpe1gb", **raw(h0=",x-vga=1,rombar=0")))
    assert new_values(script)[:2] == ["host,flags=+pdpe1gb", f"{ADDRESSES[0]},rombar=0"]
    with pytest.raises(ScriptError, match="kvm=off"):
        made("P2", vm(args="-cpu host,kvm=off"))


def test_what_cannot_be_addressed_is_refused() -> None:
    with pytest.raises(ScriptError, match="its own hostpci entry"):
        made("P2", vm(hostpci0="0000:01:00.0;0000:01:00.1"))
    whole_device = PCI_MAPPINGS.known((PciMapping("pro6000", "kpro6", "0000:01:00", "10de:2bb5"),), lines=(1,))
    with pytest.raises(ScriptError, match="names whole devices"):
        made("P2", vm(), whole_device)


def test_the_window_comes_after_the_address_bits() -> None:
    failures = BAR_FAILURES.known((BarFailure("0000:03:00.0", 1, "BAR 1: can't assign; no space"),), lines=(1,))
    short: list[Reading[Any]] = [failures, GPU_COUNT_SMI.known(2, lines=(1,)), GPU_COUNT_PCI.known(8, lines=(1,))]
    first = made("P2", vm(cpu="kvm64"), *short)
    assert "pci-hole64-size" not in first.text
    assert "address bits come first" in " ".join(first.left_out)
    seabios = made("P2", vm(machine="q35"), *short)
    assert new_values(seabios) == [f"{CLIQUES} -global q35-pcihost.pci-hole64-size=2048G"]
    ovmf = made("P2", vm(bios="ovmf"), *short)
    assert new_values(ovmf) == [f"{CLIQUES} -fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=2097152"]


def test_a_false_grant_is_taken_out_and_nothing_else() -> None:
    broken = next(s for s in SCENARIOS if s.name == "granted, and the bytes do not arrive")
    args = f"-smbios type=11 {CLIQUES} -global vfio-pci.x-nv-gpudirect-clique=0 -snapshot"
    items = [item.reading for item in broken.items]
    script = phase_script(facts_of(*items, vm(args=args)), "P2", Do.APPLY)
    assert new_values(script) == ["-smbios type=11 -snapshot"]
    odd = vm(args="-device vfio-pci,host=0000:01:00.0,x-nv-gpudirect-clique=0")
    with pytest.raises(ScriptError, match="taken out by hand"):
        phase_script(facts_of(*items, odd), "P2", Do.APPLY)


@pytest.mark.parametrize(
    ("machine", "new"),
    [
        ("", "q35"),
        ("pc", "q35"),
        ("pc-i440fx-10.1", "pc-q35-10.1"),
        ("pc-i440fx-9.2+pve1,viommu=virtio", "pc-q35-9.2+pve1,viommu=virtio"),
    ],
)
def test_the_board_keeps_its_version(machine: str, new: str) -> None:
    script = made("P3", vm(machine=machine))
    assert new_values(script)[0] == new
    assert new_values(script)[1:] == ["mapping=pro6000,pcie=1"] * 8


def test_network_cards_alone_have_hardware_addresses() -> None:
    card = "virtio=BC:24:11:0A:0B:0C,bridge=vmbr0"
    script = made("P3", vm(usb0="host=1234:5678", net0=card, ide2="none,media=cdrom"))
    assert "bc:24:11:0a:0b:0c" in script.text
    assert "1234:5678" not in script.text


def test_a_host_of_one_core_a_socket_does_not_split_over_two_nodes() -> None:
    nodes = HOST_NUMA_NODES.known((NumaNode(0, "0-31", 393216), NumaNode(1, "32-63", 393216)), lines=(1,))
    with pytest.raises(ScriptError, match="1 cores and 442368 MiB do not split over 2 nodes"):
        made("P4", vm(cores="", sockets="", memory="442368"), nodes)


def test_a_machine_that_is_not_whole_is_refused() -> None:
    part = VMS.known((Vm(id=128, name="llm-one", config={"name": "llm-one"}, filtered=True),))
    with pytest.raises(ScriptError, match="whole configuration of VM 128 has not been read"):
        made("P2", part)
    with pytest.raises(ScriptError, match=r"No Proxmox VM is known.*--vmid") as unknown:
        made("P2")
    assert "Ask the host" in unknown.value.on_page
    assert "--vmid" not in unknown.value.on_page
    with pytest.raises(ScriptError, match="no phase 'P9'"):
        made("P9", vm())
    with pytest.raises(ScriptError, match="is not a VM id"):
        phase_script(facts_of(*kvm_guest(), vm()), "P2", Do.APPLY, -1)


def test_hidden_names_are_not_compared() -> None:
    """A redacted answer still gets its script; the rest of what it would change is compared."""
    token, uuid = "<host-1>", "9f3a0c1d-0000-4000-8000-000000000002"
    config = {**WHOLE.config, "name": token, "net0": "virtio=<mac-1>,bridge=vmbr0"}
    hidden = replace(WHOLE, name=token, uuid=uuid, config=config)
    for phase in ("P2", "P3"):
        script = made(phase, VMS.known((hidden,), lines=(1,)))
        assert "vm_name=''\nvm_uuid=''\n" in script.text
        assert "hidden in the host's answers" in script.left_out[0]


def test_p2p_that_is_switched_off_by_a_variable_is_switched_on() -> None:
    seen = NCCL_TRANSPORTS.known(NcclTransports(shm=56), lines=(1,))
    off = NCCL_ENV.known({"NCCL_P2P_DISABLE": "1"}, lines=(1,))
    facts = facts_of(*kvm_guest(P2pCode.OK), seen, off)
    script = phase_script(facts, "P1", Do.APPLY, role="guest")
    assert script.changes == ("NCCL_P2P_LEVEL=PHB", "NCCL_P2P_DISABLE=0")


def test_outside_proxmox_there_are_texts() -> None:
    guest = diagnose(facts_of(*kvm_guest()))
    assert {one.id for one in clique_instructions(guest)} == {*("libvirt", "libvirt-commandline", "qemu")}
    domain = VMS.known((Vm(name="gpu", machine="pc-q35-9.2"),), lines=(1,))
    found = clique_instructions(diagnose(facts_of(*kvm_guest(), domain)))
    assert [one.id for one in found] == ["libvirt", "libvirt-commandline"]
    assert not clique_instructions(diagnose(facts_of(*kvm_guest(), vm())))
    assert not clique_instructions(diagnose(facts_of(VIRT_KIND.known("none", lines=(1,)))))
    for one in clique_instructions(guest):
        assert "clique" in one.text
        assert one.source
        assert one.rollback
        assert "topo -p2p" in one.steps[-1]


def test_the_sound_of_a_card_and_a_mapping_of_another_vendor_get_no_clique() -> None:
    group = IommuGroup(
        5,
        ("0000:05:00.0", "0000:05:00.1"),
        ("05:00.0 VGA compatible controller: NVIDIA Corporation", "05:00.1 Audio device: NVIDIA Corporation"),
    )
    known = IOMMU_GROUPS.known((group,), lines=(1,))
    assert new_values(made("P2", vm(hostpci8="0000:05:00.1"), known)) == [CLIQUES]
    assert new_values(made("P2", vm(hostpci8="05:00.1"), known)) == [CLIQUES]
    ninth = "-set device.hostpci8.x-nv-gpudirect-clique=0"
    assert new_values(made("P2", vm(hostpci8="0000:05:00.0"), known)) == [f"{CLIQUES} {ninth}"]
    for vendor, more in (("10DE:2bb5", f" {ninth}"), ("8086:1533", ""), ("", f" {ninth}")):
        mapping = PCI_MAPPINGS.known((PciMapping("other", "kpro6", "0000:06:00.0", vendor),), lines=(1,))
        assert new_values(made("P2", vm(hostpci8="mapping=other"), mapping)) == [f"{CLIQUES}{more}"], vendor


@pytest.mark.parametrize(
    ("cores", "cpus"), [("64", ("0-31", "32-63")), ("4", ("0-1", "2-3")), ("2", ("0", "1"))], ids=["64", "4", "2"]
)
def test_memory_nodes_share_cores_and_memory_and_one_without_memory_gets_none(
    cores: str, cpus: tuple[str, ...]
) -> None:
    nodes = (NumaNode(0, "0-31", 393216), NumaNode(1, "32-63", 393216), NumaNode(2, "64-95", 0), NumaNode(3, "", 8192))
    script = made("P4", vm(cores=cores, sockets="1", memory="442368"), HOST_NUMA_NODES.known(nodes, lines=(1,)))
    each = str(int(cores) // 2)
    lines = [f"cpus={own},hostnodes={node},memory=221184,policy=bind" for node, own in enumerate(cpus)]
    assert sorted(new_values(script)) == sorted(["1", "2", each, *lines])


def test_a_mapping_of_its_own_gives_each_slot_the_clique_of_its_socket() -> None:
    paths = tuple(GpuPath(a, "0000:00", numa_node=1 - i // 4) for i, a in enumerate(ADDRESSES))
    pool = tuple(PciMapping(f"gpu{i}", "kpro6", a, "10de:2bb5") for i, a in enumerate(ADDRESSES))
    intel = PLATFORM.known(Platform(cpu="Intel(R) Xeon(R) Platinum 8480+", sockets=2), lines=(1,))
    lines = {f"hostpci{i}": f"mapping=gpu{i}" for i in range(8)}
    known = (GPU_PATHS.known(paths, lines=(1,)), PCI_MAPPINGS.known(pool, lines=(1,)), intel)
    own = [f"-set device.hostpci{i}.x-nv-gpudirect-clique={1 - i // 4}" for i in range(8)]
    assert new_values(made("P2", vm(**lines), *known)) == [" ".join(own)]


def test_each_variable_of_the_guest_is_given_its_own_value() -> None:
    off = NCCL_ENV.known({"NCCL_P2P_DISABLE": "1"}, lines=(1,))
    text = phase_script(facts_of(*kvm_guest(P2pCode.OK), off), "P1", Do.APPLY, role="guest").text
    values = dict(re.findall(r"^(value_\d+)='(.*)'$", text, re.M))
    given = {name: values[value] for name, value in re.findall(r'"\$1" (NCCL_\w+) "\$(value_\d+)"', text)}
    assert given.items() >= {"NCCL_P2P_LEVEL": "PHB", "NCCL_P2P_DISABLE": "0"}.items()
    assert len(given) == len(values)


def test_one_rank_has_a_guest_script_for_its_flags_alone() -> None:
    guest = (*kvm_guest(P2pCode.OK), PARALLELISM.known(Parallelism(tp=1), lines=(1,)))
    engine = ENGINE.known(Engine("vllm", flags={"--enforce-eager": ""}), lines=(1,))
    script = phase_script(facts_of(*guest, engine), "P1", Do.APPLY, role="guest")
    assert script.changes == ("without --enforce-eager",)
    with pytest.raises(ScriptError):
        phase_script(facts_of(*guest), "P1", Do.APPLY, role="guest")
