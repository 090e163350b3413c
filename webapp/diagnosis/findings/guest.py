"""What the guest's outputs look like and do not mean.

Source: Proxmox qemu-server 9.2.6, PCI.pm; PCI Express rates; copies timed on two H200, 2026.
"""

from agents.facts import ReadingKind
from agents.facts.bench import COPY, CopyPath, CopyRow
from agents.facts.gpu import GPU_NUMA, GPUS
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import TOPOLOGY, TopologyMatrix
from agents.facts.platform import GUEST_IOMMU, MACHINE_TYPE, NUMA_NODES
from webapp.diagnosis.case import Case, Finding, GateState
from webapp.diagnosis.claim import EvidenceRef, measured_claim
from webapp.diagnosis.facts import Sourced
from webapp.diagnosis.option import because
from webapp.diagnosis.reference.curves import STAGED_SOURCE, link_share, staged_gb_per_s
from webapp.diagnosis.reference.gpus import gpu_spec

PVE_MAP = "qemu-server 9.2.6, PCI.pm, address map"
MIB = 2**20
RAW_GEN5_X16_GB_PER_S = 63
# What a synchronised call reads inside one GPU: beside ten times that it no longer matters.
SYNCHRONISED_US = 17


def pix_is_emulated(case: Case) -> Finding | None:
    """Proxmox's i440FX map puts hostpci4 and up behind one emulated bridge."""
    item = next((s for s in case.facts.all(TOPOLOGY) if _near(s.reading.value)), None)
    if item is None or not case.situation.in_kvm:
        return None
    gpus = sorted(_near(item.reading.value), key=lambda name: int(name.removeprefix("GPU")))
    now = item is case.facts.best(TOPOLOGY)
    text = (
        f"PIX among {gpus[0]} to {gpus[-1]}{'' if now else ', as read before,'} is an artefact of the "
        "address map that Proxmox gives an i440FX guest: one emulated bridge holds them. It says nothing "
        "about the wiring"
    )
    return Finding("pix_is_emulated", "info", (because(text, PVE_MAP, item.refs[:2] + case.facts.refs(MACHINE_TYPE)),))


def _near(topology: TopologyMatrix | None) -> set[str]:
    links = topology.gpu_links() if topology else {}
    return {end for pair, link in links.items() if link in {"PIX", "PXB"} for end in pair}


def wrong_baseline(case: Case) -> Finding | None:
    """A copy inside one GPU never crosses the link that a copy between two has to cross."""
    fastest = _best_same(case)
    if fastest is None or case.situation.copy_curve is None:
        return None
    item, inside = fastest
    refs = (EvidenceRef(item.source, inside.line or item.refs[0].line),)
    rate = inside.size_bytes / inside.time_us / 1e3
    link = case.situation.link
    share = link.share
    if rate < RAW_GEN5_X16_GB_PER_S * share:
        return None
    text = (
        f"{rate:.0f} GB/s inside one GPU is the wrong baseline for copies between GPUs: a {link} link gives "
        f"{RAW_GEN5_X16_GB_PER_S * share:.0f} GB/s raw, {50 * share:.0f}–{56 * share:.0f} with P2P"
    )
    claims = [because(text, "PCI Express rates; public P2P measurements, 2026", refs)]
    spec = next((s for gpu in case.facts.value(GPUS) or () if (s := gpu_spec(gpu.name))), None)
    if spec and 2 * rate > spec.bandwidth_gb_per_s:
        text = (
            f"reading and writing at {rate:.0f} GB/s each is more than its memory’s "
            f"{spec.bandwidth_gb_per_s:.0f} GB/s: at {_size(inside.size_bytes)} it measured the L2 cache"
        )
        claims.append(because(text, spec.source, refs))
    return Finding("wrong_baseline", "info", tuple(claims))


def _best_same(case: Case) -> tuple[Sourced, CopyRow] | None:
    rows = [
        (item, row)
        for item in case.facts.all(COPY)
        for row in (item.reading.value.rows if item.reading.value else ())
        if row.path is CopyPath.SAME and row.time_us > 0
    ]
    return max(rows, key=lambda pair: pair[1].size_bytes / pair[1].time_us, default=None)


def numa_not_available(case: Case) -> Finding | None:
    nodes, refs = case.facts.value(GPU_NUMA), case.facts.refs(GPU_NUMA)
    if not nodes or any(node.numa_node is not None for node in nodes):
        return None
    guest = case.facts.value(NUMA_NODES)
    seen = f"; this guest has {len(guest)}" if guest else ""
    text = f"NUMA affinity N/A matters only in a guest with more than one memory node{seen}"
    return Finding("numa_not_available", "info", (because(text, "nvidia-smi topo -m manual", refs),))


def no_iommu_in_guest(case: Case) -> Finding | None:
    iommu = case.facts.value(GUEST_IOMMU)
    if not case.situation.in_kvm or (iommu is not None and iommu.enabled):
        return None
    looked = case.facts.kind(GUEST_IOMMU) in {ReadingKind.KNOWN, ReadingKind.ABSENT}
    refs = case.facts.refs(GUEST_IOMMU) if looked else case.situation.platform_refs
    text = "no IOMMU in the guest is normal; an emulated one would not help P2P"
    return Finding("no_iommu_in_guest", "info", (because(text, "QEMU, intel-iommu device", refs),))


def staged_plateau(case: Case) -> Finding | None:
    """Large copies at the speed of a detour over host memory."""
    curve = case.situation.copy_curve
    if curve is None or case.passes("driver"):
        return None
    large = [(size, size / us / 1e3) for size, us in curve.points if size >= MIB]
    if not large:
        return None
    size, rate = max(large, key=lambda point: point[1])
    link = case.situation.link
    usual = staged_gb_per_s(link.gen, link.width)
    if not 0.5 * usual <= rate <= 1.2 * usual:
        return None
    share = link_share(link.gen, link.width)
    text = (
        f"{rate:.1f} GB/s at {_size(size)}: the plateau looks like any staged copy without P2P, "
        f"{38 * share:.0f}–{45 * share:.0f} GB/s, in a VM as on bare metal"
    )
    claim = because(text, STAGED_SOURCE, curve.evidence + case.facts.refs(GPUS), (rate, rate))
    return Finding("staged_plateau", "info", (claim,))


def host_synchronised(case: Case) -> Finding | None:
    curve = case.situation.copy_curve
    if curve is None or curve.device_timed:
        return None
    size, us = curve.points[0]
    if us > 10 * SYNCHRONISED_US:
        return None
    text = (
        f"{us:.1f} µs for {_size(size)} alone prove nothing: timed with a synchronise for each call, which "
        f"reads {SYNCHRONISED_US} µs even inside one GPU"
    )
    source = "measured on two H200, 2026: 14 to 17 µs synchronised, 0.9 µs on the device"
    return Finding("host_synchronised", "info", (because(text, source, curve.evidence, (us, us)),))


def level_is_set(case: Case) -> Finding | None:
    level = (case.facts.value(NCCL_ENV) or {}).get("NCCL_P2P_LEVEL")
    if level is None or not case.fails("driver"):
        return None
    text = f"NCCL_P2P_LEVEL={level} costs nothing now and will be needed once the driver allows P2P"
    return Finding("level_is_set", "info", (because(text, "NCCL 2.30, src/graph", case.facts.refs(NCCL_ENV)),))


def geforce_allowed(case: Case) -> Finding | None:
    """The stock driver gives these cards no P2P over PCIe, so an OK has another cause."""
    driver, specs = case.gate("driver"), [gpu_spec(g.name) for g in case.facts.value(GPUS) or ()]
    geforce = bool(specs) and all(spec and spec.geforce for spec in specs)
    if not geforce or driver is None or driver.state is not GateState.PASS:
        return None
    refs = case.facts.refs(GPUS) + driver.evidence
    if case.situation.in_kvm:
        text = (
            "on GeForce cards in a VM a clique was accepted while data never arrived: check the bytes at "
            "their destination before anything uses P2P"
        )
        return Finding("geforce_allowed", "warning", (because(text, "NVIDIA/nccl issue 2335", refs),))
    text = (
        "the stock driver gives GeForce cards no P2P over PCIe, so an OK points to a patched module: "
        "nobody supports it, and only a check of the bytes shows that it works"
    )
    source = "public topo -p2p outputs of GeForce cards, 2024 to 2026"
    return Finding("geforce_allowed", "warning", (because(text, source, refs),))


def rejected_rows(case: Case) -> Finding | None:
    """Rows whose own arithmetic does not hold."""
    claims = [
        measured_claim(
            f"left out: “{row.text.strip()}” is {row.computed_gb_per_s:.1f} GB/s by its own size and "
            f"time, not {row.printed_gb_per_s:g}",
            (EvidenceRef(item.source, row.line or item.refs[0].line),),
        )
        for item in case.facts.all(COPY)
        for row in (item.reading.value.rejected if item.reading.value else ())
    ]
    return Finding("rejected_rows", "warning", tuple(dict.fromkeys(claims))) if claims else None


def _size(size_bytes: int) -> str:
    if size_bytes >= 1024 * MIB:
        return f"{size_bytes / (1024 * MIB):.3g} GiB"
    return f"{size_bytes / MIB:.3g} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:.3g} KiB"


RULES = (
    pix_is_emulated,
    wrong_baseline,
    staged_plateau,
    host_synchronised,
    rejected_rows,
    numa_not_available,
    no_iommu_in_guest,
    level_is_set,
    geforce_allowed,
)
