"""Machines as operators meet them: what was read, and what must come out.

`fails`: the first gate that fails, "path gate"; `top`: the hypothesis a reader hears of first. None:
none. `contradicts`: contradictions that must fire, among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.facts import Fact, Reading
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    DELIVERY,
    PROFILE,
    SERVING,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    DeliveryResult,
    Profile,
    ServingRow,
    Timing,
)
from agents.facts.gpu import (
    BAR_FAILURES,
    CLIQUE_CAPABILITY,
    FABRIC,
    GPU_COUNT_PCI,
    GPU_COUNT_SMI,
    GPU_NUMA,
    GPUS,
    NVLINKS,
    XID_EVENTS,
    BarFailure,
    Clique,
    Fabric,
    Gpu,
    GpuNuma,
    NvLinks,
    XidEvent,
)
from agents.facts.host import (
    ACS,
    GPU_PATHS,
    PLATFORM,
    VFIO_BACKEND,
    VFIO_ERRORS,
    AcsPort,
    GpuPath,
    Platform,
    VfioBackend,
    VfioError,
)
from agents.facts.nccl import ENGINE, NCCL_ENV, NCCL_TRANSPORTS, Engine, NcclTransports
from agents.facts.p2p import P2P_NVLINK, P2P_PCIE, P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, P2pMatrix
from agents.facts.platform import KVM_VISIBLE, MEMORY_MIB, NUMA_NODES, PHYS_BITS, SHM, VIRT_KIND, NumaNode, SharedMemory
from agents.facts.vm import QEMU_COMMANDS, VMS, HostPci, QemuCommand, QemuDevice, Vm
from agents.facts.workload import GOAL, MODEL, NOTES, OBSERVED, PARALLELISM, Goal, Model, Observed, Parallelism
from tests.webapp.diagnosis.building import matrix, sourced, topology
from webapp.diagnosis.facts import Facts, Sourced

Given = list[Reading[Any]]

PRO = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
H200 = "NVIDIA H200"
GEFORCE = "NVIDIA GeForce RTX 4090"
OK, NS, CNS = P2pCode.OK, P2pCode.NS, P2pCode.CNS
TP8 = PARALLELISM.known(Parallelism(tp=8), lines=(1,))
LARGE = Model(
    "Large-NVFP4",
    layers=78,
    hidden_size=6144,
    activation_bytes=2,
    total_params=744e9,
    active_params=40e9,
    active_weight_bytes=(23.2e9, 72e9),
    weight_bytes=(410e9, 440e9),
    experts=256,
    experts_active=8,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """proven: bytes and collectives were checked and right, so that P2P may be said to work."""

    name: str
    items: tuple[Sourced, ...]
    fails: str | None = None
    top: str | None = None
    contradicts: frozenset[str] = frozenset()
    proven: bool = False

    @property
    def facts(self) -> Facts:
        return Facts.of(self.items)


def _scenario(
    name: str,
    given: Given,
    fails: str | None = None,
    top: str | None = None,
    *,
    contradicts: Sequence[str] = (),
    proven: bool = False,
    later: Given | None = None,
) -> Scenario:
    """later: read after a change."""
    items = [*sourced(*given), *sourced(*(later or []), epoch=1)]
    return Scenario(name, tuple(items), fails, top, frozenset(contradicts), proven)


# -- what was read, in small pieces


def _gpus(count: int = 8, name: str = PRO, **fields: Any) -> Reading[Any]:
    return GPUS.known(_cards(count, name, **fields), lines=(3,))


def _cards(count: int, name: str = PRO, **fields: Any) -> tuple[Gpu, ...]:
    base = Gpu(0, name=name, mig=False, virtualisation_mode="Pass-Through", vram_mib=97887)
    return tuple(replace(base, index=i, **fields) for i in range(count))


def _p2p(code: P2pCode | P2pMatrix, size: int = 8) -> Given:
    cells = matrix(size, code) if isinstance(code, P2pCode) else code
    return [P2P_READ.known(cells, lines=(5,)), P2P_WRITE.known(cells, lines=(6,))]


def _on(kind: str, *, kvm: bool | None = None, link: str = "PHB", size: int = 8) -> Given:
    found: Given = [VIRT_KIND.known(kind, lines=(1,)), TOPOLOGY.known(topology(size, link))]
    return found if kvm is None else [*found, KVM_VISIBLE.known(kvm, lines=(2,))]


def _kvm(code: P2pCode | P2pMatrix = NS, size: int = 8, gpus: Reading[Any] | None = None) -> Given:
    return [*_on("kvm", kvm=True, size=size), gpus or _gpus(size), *_p2p(code, size)]


def _bare(code: P2pCode = OK, size: int = 8, name: str = PRO) -> Given:
    gpus = _gpus(size, name, virtualisation_mode="None")
    return [*_on("none", size=size), gpus, *_p2p(code, size)]


def _capability(have: int = 8, of: int = 8, ids: Sequence[int | None] = (0,)) -> Reading[Any]:
    found = [
        Clique(f"0000:0{i + 1}:00.0", ids[i % len(ids)], 0xC8) if i < have else Clique(f"0000:0{i + 1}:00.0", None)
        for i in range(of)
    ]
    return CLIQUE_CAPABILITY.known(tuple(found), lines=(9,))


def _delivery(size: int, *, right: bool) -> Reading[Any]:
    pairs = {f"{a}->{b}": right for a in range(size) for b in range(size) if a != b}
    return DELIVERY.known(DeliveryResult(pairs), lines=(4,))


def _all_reduce(*, p2p: bool, wrong: int | None = 0, hang: bool = False) -> Reading[Any]:
    rows = () if hang else (AllReduceRow(12288, 40.0, 8, wrong=wrong),)
    environment = {"transport": "P2P" if p2p else "SHM"} | ({"outcome": "hang"} if hang else {})
    return ALLREDUCE.known(AllReduceResult(rows, p2p, Timing.DEVICE, environment), lines=(2,))


def _checked(size: int = 8) -> Given:
    right = [_all_reduce(p2p=True), _all_reduce(p2p=False)]
    return [_delivery(size, right=True), *right, _log(p2p=16)]


def _log(**counts: Any) -> Reading[Any]:
    return NCCL_TRANSPORTS.known(NcclTransports(**counts), lines=(7,))


def _served(*rates: float) -> Given:
    return [SERVING.known((ServingRow(1, rate),), lines=(2,)) for rate in rates]


def _workload(tokens_per_s: float = 11.0, **parallel: Any) -> Given:
    return [
        MODEL.known(LARGE, lines=(1,)),
        PARALLELISM.known(Parallelism(**{"tp": 8, **parallel}), lines=(1,)),
        OBSERVED.known((Observed(1, (tokens_per_s, tokens_per_s)),), lines=(1,)),
    ]


def _copies() -> Reading[Any]:
    rows = (
        CopyRow(CopyPath.PEER, "0", "1", 12288, 13.7, line=3),
        CopyRow(CopyPath.PEER, "0", "1", 16 * 2**20, 405.1, line=4),
    )
    return COPY.known(CopyResult(rows), lines=(3,))


def _vm(*, x_vga: bool | None = None, **fields: Any) -> Reading[Any]:
    slots = tuple(HostPci(i, mapping="gpus", x_vga=x_vga) for i in range(8))
    config = {"cores": "64", **({"args": fields["args"]} if "args" in fields else {})}
    lines = {"cores": 1, "args": 2, "cpu": 3}
    vm = Vm(id=128, hostpci=slots, config=config, key_lines=lines, running=True, **fields)
    return VMS.known((vm,), lines=(1,))


def _args(count: int = 8) -> str:
    return " ".join(f"-set device.hostpci{i}.x-nv-gpudirect-clique=0" for i in range(count))


def _line(cliques: int = 8, *, iommufd: bool = False) -> Reading[Any]:
    devices = tuple(
        QemuDevice(f"hostpci{i}", f"0000:0{i}:00.0", None, 0 if i < cliques else None, iommufd) for i in range(8)
    )
    command = QemuCommand(128, True, "pc", devices=devices, cpu="host", text="/usr/bin/kvm -id 128")
    return QEMU_COMMANDS.known((command,), lines=(1,))


def _start_log(*errors: tuple[int, int | None, str], clean: bool = True) -> Reading[Any]:
    """errors: (VM, errno, text). clean: QEMU's messages after the start stand in it, too."""
    found = tuple(VfioError("0000:01:00.0", code, text, vm) for vm, code, text in errors)
    missing = () if clean else ("what QEMU said after the start (journalctl -t QEMU)",)
    return VFIO_ERRORS.known(found, lines=(8,), missing=missing)


TYPE1 = VFIO_BACKEND.known(VfioBackend.TYPE1, lines=(6,))
BAD_ADDRESS = "vfio_container_dma_map(0x5581, 0xfd00000000, 0x2000000000) = -14 (Bad address)"
GRANTED = [_capability(), *_kvm(OK)]
BUSY: dict[str, Any] = {"utilisation_percent": 100, "power_limit_w": 600.0}


def _counts(listed: int, on_bus: int) -> Given:
    return [GPU_COUNT_SMI.known(listed, lines=(1,)), GPU_COUNT_PCI.known(on_bus, lines=(1,))]


def _nvlinked(size: int = 2, kind: str = "kvm", state: str = "Completed") -> Given:
    ok = matrix(size, OK if state == "Completed" else NS)
    answers: list[Fact[Any]] = [P2P_READ, P2P_WRITE, P2P_NVLINK]
    return [
        VIRT_KIND.known(kind, lines=(1,)),
        _gpus(size, H200, vram_mib=143771),
        TOPOLOGY.known(topology(size, "NV18"), lines=(2,)),
        *(fact.known(ok, lines=(3,)) for fact in answers),
        P2P_PCIE.known(matrix(size, NS), lines=(3,)),
        FABRIC.known(Fabric(state, "Success" if state == "Completed" else None), lines=(4,)),
    ]


def _nodes(count: int, placed: int | None) -> Given:
    nodes = tuple(NumaNode(i, "0-7") for i in range(count))
    gpus = tuple(GpuNuma(f"GPU{i}", placed) for i in range(8))
    return [NUMA_NODES.known(nodes, lines=(1,)), GPU_NUMA.known(gpus, lines=(1,))]


def _plx(redirect: bool) -> Given:
    paths = [GpuPath(f"0000:{i:02x}:00.0", "0000:00", "0000:00:01.1", f"0000:0{i // 4 + 1}:00.0") for i in range(8)]
    ports = (AcsPort("0000:02:00.0", redirect, "SrcValid+ ReqRedir+ CmpltRedir+"),)
    return [GPU_PATHS.known(tuple(paths), lines=(1,)), ACS.known(ports, lines=(1,))]


def _islands(size: int, inside: int) -> P2pMatrix:
    """OK among the first `inside` GPUs and among the others, NS across."""
    across = [(a, b, NS) for a in range(size) for b in range(size) if (a < inside) is not (b < inside)]
    return matrix(size, OK, *across)


def _first_ones(size: int, have: int) -> P2pMatrix:
    """OK among the first `have` GPUs alone."""
    cells = [(a, b, OK) for a in range(have) for b in range(have) if a != b]
    return matrix(size, NS, *cells)


def _mixed() -> Reading[Any]:
    return GPUS.known((*_cards(1, H200), *_cards(8)[1:]), lines=(3,))


KVM = (
    _scenario("a guest without a clique", [TP8, *_kvm()], "pcie driver", "p2p_denied_no_clique"),
    _scenario("its configuration has no args", [TP8, *_kvm(), _vm()], "pcie granted", "p2p_denied_no_clique"),
    _scenario("the whole way up", [TP8, *GRANTED, TYPE1, _start_log(), *_checked()], proven=True),
    _scenario("granted and not looked at further", [TP8, *GRANTED]),
    _scenario(
        "granted, and the bytes do not arrive",
        [TP8, *GRANTED, _delivery(8, right=False)],
        "pcie delivered",
        "false_p2p_grant",
    ),
    _scenario(
        "granted, and the sums are wrong",
        [TP8, *GRANTED, _all_reduce(p2p=True, wrong=7), _all_reduce(p2p=False)],
        "pcie collective",
        "false_p2p_grant",
    ),
    _scenario(
        "granted, and the first collective hangs",
        [TP8, *GRANTED, _all_reduce(p2p=True, hang=True), _all_reduce(p2p=False)],
        "pcie collective",
        "false_p2p_grant",
    ),
    _scenario("right over P2P, without a control", [TP8, *GRANTED, _delivery(8, right=True), _all_reduce(p2p=True)]),
    _scenario(
        "KVM hidden from the guest", [TP8, *_on("qemu", kvm=False), _gpus(), *_p2p(CNS)], "pcie driver", "kvm_hidden"
    ),
    _scenario(
        "x-vga hides KVM, and the clique is ignored",
        [TP8, *_on("qemu", kvm=False), _gpus(), *_p2p(CNS), _vm(args=_args(), x_vga=True)],
        "pcie driver",
        "kvm_hidden",
    ),
    _scenario("MIG is on", [TP8, *_kvm(gpus=_gpus(mig=True))], "pcie driver", "p2p_denied_other"),
    _scenario("mixed chips", [TP8, *_kvm(gpus=_mixed())], "pcie driver", "p2p_denied_other"),
    _scenario(
        "vGPUs in place of passed-through ones",
        [TP8, *_kvm(gpus=_gpus(virtualisation_mode="VGPU"))],
        "pcie driver",
        "p2p_denied_other",
    ),
    _scenario(
        "QEMU could not map the peers' BARs",
        [TP8, *GRANTED, TYPE1, _start_log((128, -14, BAD_ADDRESS)), _vm(args=_args())],
        "pcie mapped",
        "false_p2p_grant",
    ),
    _scenario(
        "iommufd without dma-buf",
        [TP8, *GRANTED, _line(iommufd=True), _start_log((128, None, "IOMMU_IOAS_MAP failed: Bad address, PCI BAR?"))],
        "pcie mapped",
        "false_p2p_grant",
    ),
    _scenario("iommufd and a clean log", [TP8, *GRANTED, _line(iommufd=True), _start_log()]),
    _scenario(
        "another VM's BARs were not mapped",
        [TP8, *GRANTED, TYPE1, _vm(args=_args()), _start_log((131, -22, BAD_ADDRESS))],
    ),
    _scenario("a start log without QEMU's messages", [TP8, *GRANTED, TYPE1, _start_log(clean=False)]),
    _scenario(
        "a clique in the configuration that does not run yet",
        [TP8, *_kvm(), _vm(args=_args()), _line(0)],
        "pcie granted",
        "p2p_denied_no_clique",
        contradicts=["not_restarted"],
    ),
    _scenario(
        "a clique on four of eight GPUs",
        [TP8, *_kvm(_first_ones(8, 4)), _capability(4)],
        "pcie granted",
        "p2p_denied_no_clique",
    ),
    _scenario(
        "two cliques",
        [TP8, *_kvm(_islands(8, 4)), _capability(ids=(0, 0, 0, 0, 1, 1, 1, 1))],
        "pcie driver",
        "p2p_denied_other",
    ),
    _scenario(
        "args whose quotes do not pair", [TP8, *_kvm(), _vm(args=f"'{_args()}")], "pcie granted", "p2p_denied_no_clique"
    ),
    _scenario(
        "pcie=1 asked for on i440FX",
        [TP8, *_kvm(), _vm(pending={"hostpci0": "mapping=gpus,pcie=1"})],
        "pcie granted",
        "p2p_denied_no_clique",
        contradicts=["pcie_without_q35"],
    ),
)

GROUND = (
    _scenario("GeForce on bare metal", [TP8, *_bare(CNS, name=GEFORCE)], "pcie driver", "p2p_unsupported_gpu"),
    _scenario(
        "GeForce in a guest with KVM hidden",
        [TP8, *_on("qemu", kvm=False), _gpus(name=GEFORCE), *_p2p(CNS)],
        "pcie driver",
        "p2p_unsupported_gpu",
    ),
    _scenario("an unknown chipset on bare metal", [TP8, *_bare(CNS)], "pcie driver", "p2p_denied_other"),
    _scenario("two I/O hubs", [TP8, *_bare(P2pCode.TNS)], "pcie driver", "p2p_denied_other"),
    _scenario("switched off by a registry key", [TP8, *_bare(P2pCode.DR)], "pcie driver", "p2p_denied_other"),
    _scenario("bare metal, checked", [TP8, *_bare(), *_checked()], proven=True),
    _scenario("bare metal, the driver's answer alone", [TP8, *_bare()]),
    _scenario(
        "bare metal, OK and a hang",
        [TP8, *_bare(), _all_reduce(p2p=True, hang=True), _all_reduce(p2p=False)],
        "pcie collective",
        "false_p2p_grant",
    ),
    _scenario("AWS", [TP8, *_on("amazon"), _gpus(name="NVIDIA L40S"), *_p2p(NS)], "pcie driver", "p2p_denied_other"),
    _scenario("VMware", [TP8, *_on("vmware"), _gpus(), *_p2p(NS)], "pcie driver", "p2p_denied_other"),
    _scenario("Hyper-V", [TP8, *_on("microsoft"), _gpus(), *_p2p(NS)], "pcie driver", "p2p_denied_other"),
    _scenario("LXC on a host that owns the GPUs", [TP8, *_on("lxc"), _gpus(), *_p2p(OK)]),
    _scenario("a container, and nobody knows on what", [TP8, *_on("docker"), _gpus(), *_p2p(NS)], "pcie driver"),
    _scenario(
        "a container in a KVM guest",
        [TP8, *_on("docker", kvm=True), _gpus(), *_p2p(NS)],
        "pcie driver",
        "p2p_denied_no_clique",
    ),
    _scenario("one GPU", [_gpus(1), *_on("kvm", size=1)]),
    _scenario("tensor parallel 1 on eight GPUs", [PARALLELISM.known(Parallelism(tp=1), lines=(1,)), *_kvm()]),
    _scenario("no GPU at all", [VIRT_KIND.known("kvm", lines=(1,)), *_counts(0, 0)]),
)

NVLINK = (
    _scenario("a guest with NVLink", [PARALLELISM.known(Parallelism(tp=2), lines=(1,)), *_nvlinked()]),
    _scenario("bare metal with NVLink, checked", [TP8, *_nvlinked(8, "none"), *_checked()], proven=True),
    _scenario(
        "the fabric manager has not finished",
        [TP8, *_nvlinked(8, state="In Progress")],
        "nvlink fabric",
        "nvlink_fabric_down",
    ),
    _scenario(
        "all NVLinks inactive",
        [
            TP8,
            *_on("kvm", kvm=True),
            _gpus(name=H200),
            *_p2p(NS),
            NVLINKS.known(tuple(NvLinks(f"GPU{i}", 0, 18) for i in range(8)), lines=(1,)),
        ],
        "pcie driver",
        "nvlink_fabric_down",
    ),
)

USE = (
    _scenario(
        "eight GPUs at PHB and NCCL's default level", [TP8, *GRANTED, _log(shm=16)], "pcie used", "nccl_level_too_low"
    ),
    _scenario(
        "NCCL_P2P_LEVEL=PXB at PHB",
        [TP8, *GRANTED, _log(shm=16), NCCL_ENV.known({"NCCL_P2P_LEVEL": "PXB"}, lines=(2,))],
        "pcie used",
        "nccl_level_too_low",
    ),
    _scenario(
        "NCCL_P2P_DISABLE=1 was left set",
        [TP8, *GRANTED, _log(shm=16), NCCL_ENV.known({"NCCL_P2P_DISABLE": "1"}, lines=(2,))],
        "pcie used",
        "nccl_level_too_low",
    ),
    _scenario(
        "two GPUs allowed, and SHM in the log",
        [PARALLELISM.known(Parallelism(tp=2), lines=(1,)), *_bare(size=2), _log(shm=4)],
        "pcie used",
    ),
    _scenario(
        "NET/Socket in a container",
        [TP8, *_on("docker"), _gpus(), *_p2p(OK), _log(net=16), SHM.known(SharedMemory(64), lines=(1,))],
        "pcie used",
        "nccl_on_network",
    ),
    _scenario(
        "NET beside SHM, as over two machines",
        [TP8, *_kvm(), _log(net=8, shm=8)],
        "pcie driver",
        "p2p_denied_no_clique",
    ),
    _scenario(
        "P2P in the log of a driver that refuses",
        [TP8, *_kvm(), _log(p2p=16)],
        "pcie driver",
        "p2p_denied_no_clique",
        contradicts=["refused_but_used"],
    ),
    _scenario(
        "P2P makes it slower",
        [TP8, *GRANTED, *_checked()[:3], _log(shm=16), *_served(40.0, 40.1, 40.2)],
        "pcie worth",
        later=[*GRANTED, *_checked(), *_served(38.0, 38.1, 38.2)],
        proven=True,
    ),
    _scenario(
        "P2P changes nothing beyond the spread",
        [TP8, *GRANTED, *_checked()[:3], _log(shm=16), *_served(40.0, 40.6, 41.2)],
        "pcie worth",
        later=[*GRANTED, *_checked(), *_served(40.1, 40.7, 41.3)],
        proven=True,
    ),
    _scenario("ACS behind a PLX switch", [TP8, *_bare(), *_plx(redirect=True)], None, "acs_detour"),
    _scenario("a PLX switch without ACS redirect", [TP8, *_bare(), *_plx(redirect=False)]),
)

MACHINE = (
    _scenario(
        "six GPUs without address space",
        [
            *_on("kvm", kvm=True, size=2),
            _gpus(2),
            *_counts(2, 8),
            BAR_FAILURES.known((BarFailure("0000:03:00.0", 1, "BAR 1: can't assign; no space"),), lines=(7,)),
        ],
        None,
        "bar_space_shortage",
        contradicts=["gpu_count"],
    ),
    _scenario(
        "forty address bits",
        [
            *_on("kvm", kvm=True, size=2),
            _gpus(2),
            *_counts(2, 8),
            PHYS_BITS.known(40, lines=(1,)),
            MEMORY_MIB.known(442368, lines=(1,)),
        ],
        None,
        "bar_space_shortage",
        contradicts=["gpu_count"],
    ),
    _scenario(
        "Xid 79",
        [TP8, *_bare(), XID_EVENTS.known((XidEvent("0000:41:00.0", 79, "GPU has fallen off the bus."),), lines=(4,))],
        None,
        "gpu_lost",
    ),
    _scenario(
        "a narrow link",
        [TP8, *_on("none"), _gpus(pcie_gen=5, pcie_gen_max=5, pcie_width=8, pcie_width_max=16), *_p2p(OK)],
        None,
        "pcie_link_degraded",
    ),
    _scenario(
        "an idle link at a low generation",
        [TP8, *_on("none"), _gpus(pcie_gen=1, pcie_gen_max=5, pcie_width=16, pcie_width_max=16), *_p2p(OK)],
    ),
    _scenario(
        "at the power limit", [*_on("none"), _gpus(power_w=598.0, **BUSY), *_p2p(OK)], None, "power_or_thermal_limit"
    ),
    _scenario("two memory nodes, and no GPU reports one", [TP8, *GRANTED, *_nodes(2, None)], None, "numa_misplacement"),
    _scenario(
        "one node over two sockets", [TP8, *GRANTED, *_nodes(1, None), PLATFORM.known(Platform(sockets=2), lines=(1,))]
    ),
    _scenario(
        "busy at little power, and no token",
        [*_on("none"), _gpus(power_w=110.0, **BUSY), OBSERVED.known((Observed(1, (0.0, 0.0)),), lines=(1,))],
        None,
        "hang",
        contradicts=["busy_without_tokens"],
    ),
)

TIME = (
    _scenario("almost nothing", [VIRT_KIND.known("kvm", lines=(1,))]),
    _scenario("nothing at all", []),
    _scenario("a serving benchmark alone", _served(33.0)),
    _scenario("a profile of gaps alone", [PROFILE.known(Profile(10, 10, 10, 5, 55), lines=(1,))], None, "launch_bound"),
    _scenario(
        "a profile of collectives alone",
        [PROFILE.known(Profile(50, 10, 20, 10, 2), lines=(1,))],
        None,
        "communication_latency_bound",
    ),
    _scenario(
        "a refusal, and a profile that finds gaps",
        [*_kvm(), *_workload(), _copies(), PROFILE.known(Profile(10, 15, 15, 5, 46), lines=(1,))],
        "pcie driver",
        "launch_bound",
    ),
    _scenario(
        "the founding case with a log",
        [
            *_kvm(),
            *_workload(),
            _copies(),
            _vm(),
            _log(shm=16),
            GOAL.known(Goal(single_stream_tokens_per_s=100.0), lines=(1,)),
            NOTES.known("P2P could double or triple it", lines=(1,)),
        ],
        "pcie granted",
        "p2p_denied_no_clique",
        contradicts=["gain_above_bound"],
    ),
    _scenario("DP attention", [*_bare(), *_workload(dp=8, dp_attention=True), _copies()], None, None),
    _scenario("expert parallel", [*_bare(), *_workload(ep=8), _copies()], None, None),
    _scenario("weight reads fill the step", [*_bare(), *_workload(400.0), _copies()], None, "memory_bandwidth_bound"),
    _scenario(
        "eager launches",
        [*_bare(), *_workload(), ENGINE.known(Engine("vllm", flags={"--enforce-eager": ""}), lines=(1,))],
    ),
    Scenario(
        "two outputs of one state that disagree",
        (*sourced(TP8, *_kvm(OK)), *(Sourced(reading, "a later paste", order=99) for reading in _p2p(NS))),
        "pcie driver",
        "p2p_denied_no_clique",
        frozenset({"sources_disagree"}),
    ),
)

SCENARIOS: tuple[Scenario, ...] = (*KVM, *GROUND, *NVLINK, *USE, *MACHINE, *TIME)
