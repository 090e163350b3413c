"""What each key under [expect] of a case says, as facts: a check, or why no fact says it.

A check gets the expected value and what was read. True: our facts say the same. False: they say
something else. None: no fact was read that could say it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from agents.facts import Reading, ReadingKind

Verdict = bool | None
P2P = ("guest.p2p_read", "guest.p2p_write", "guest.p2p_nvlink", "guest.p2p_atomics", "guest.p2p_pcie")


@dataclass(frozen=True, slots=True)
class Read:
    """Everything read from a case's files: (file name, reading)."""

    readings: tuple[tuple[str, Reading[Any]], ...]

    def known(self, fact_id: str, file: str = "*", *, complete: bool = False) -> list[Any]:
        """Values of the fact, in the order of the files. complete: only those with nothing missing."""
        return [
            reading.value
            for name, reading in self.readings
            if reading.fact_id == fact_id
            and reading.kind is ReadingKind.KNOWN
            and fnmatch(name, file)
            and not (complete and reading.missing)
        ]

    def missing(self, fact_id: str, file: str = "*") -> list[tuple[str, ...]]:
        return [
            reading.missing
            for name, reading in self.readings
            if reading.fact_id == fact_id and reading.kind is ReadingKind.KNOWN and fnmatch(name, file)
        ]


Check = Callable[[Any, Read], Verdict]


def agreed(verdicts: Iterable[Verdict]) -> Verdict:
    """False when one is, True when all that say something agree, None when nobody says anything."""
    said = [verdict for verdict in verdicts if verdict is not None]
    return all(said) if said else None


def all_equal(found: Iterable[Any], want: Any) -> Verdict:
    return agreed(value == want for value in found)


def near(found: float, want: float, share: float = 0.02) -> bool:
    return abs(found - want) <= share * abs(want)


def address(text: str) -> str:
    """0000:01:00 and 01:00.0 as 0000:01:00.0."""
    full = text if text.count(":") == 2 else f"0000:{text}"
    return (full if "." in full else f"{full}.0").lower()


# --- GPUs -----------------------------------------------------------------------------------------


def gpu_count(want: Any, read: Read) -> Verdict:
    found = read.known("guest.gpu_count_smi", complete=True)
    found += read.known("guest.gpu_count_pci", complete=True)
    found += [len(m.gpus) for m in read.known("guest.topology")]
    found += [len(m.gpus) for fact in P2P for m in read.known(fact)]
    found += [len(m.gpus) for ms in read.known("bench.pairs") for m in ms if m.unit == "access"]
    found += [len(t.gpus) for t in read.known("guest.nccl_topology")]
    if not isinstance(want, int):
        return not found
    if want == 0:
        return no_nvidia(0, read)
    return all_equal(found, want)


def no_nvidia(want: Any, read: Read) -> Verdict:
    names = [n.name for f in ("host", "guest") for t in read.known(f"{f}.pci_tree") for n in t]
    names += [name for gs in read.known("host.iommu_groups") for g in gs for name in g.names]
    counted = read.known("guest.gpu_count_pci")
    if not names and not counted:
        return None
    return sum("NVIDIA" in name for name in names) == want and all(c == want for c in counted)


def gpu_field(field: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        values = [getattr(gpu, field) for gpus in read.known("guest.gpus") for gpu in gpus]
        return all_equal((v for v in values if v is not None), want)

    return check


def driver(want: Any, read: Read) -> Verdict:
    found = read.known("guest.driver_version")
    found += [g.driver for gpus in read.known("guest.gpus") for g in gpus if g.driver]
    return all_equal(found, want.split()[0])


def driver_flavour(want: Any, read: Read) -> Verdict:
    return all_equal((m.open for m in read.known("guest.driver_module") if m.open is not None), want.startswith("open"))


def gpu_bdf(want: Any, read: Read) -> Verdict:
    found = [g.pci_address for gpus in read.known("guest.pci_gpus") for g in gpus]
    found += [f.pci_address for fs in read.known("guest.bar_failures") for f in fs if f.pci_address]
    found += [g.pci_address for gs in read.known("guest.gpus") for g in gs if g.pci_address]
    return all_equal(found, address(want))


def missing_gpu(want: Any, read: Read) -> Verdict:
    gpus = [g for found in read.known("guest.pci_gpus") for g in found]
    revisions = [g.revision for g in gpus if g.pci_address == want["bdf_guest"]]
    listed = [g.index for found in read.known("guest.gpus") for g in found if not g.lost]
    return agreed([all_equal(revisions, want["lspci_rev"]), want["index"] not in listed if listed else None])


def driver_in_use(want: Any, read: Read) -> Verdict:
    return all_equal(
        (g.driver for gpus in read.known("guest.pci_gpus") for g in gpus), None if want.startswith("none") else want
    )


def printed_link(now: bool) -> Check:
    """ "Gen3 x8" as nvidia-smi's columns have it."""

    def check(want: Any, read: Read) -> Verdict:
        gen, width = (int(n) for n in re.findall(r"\d+", want)[:2])
        found = [
            (g.pcie_gen, g.pcie_width) if now else (g.pcie_gen_max, g.pcie_width_max)
            for gpus in read.known("guest.gpus")
            for g in gpus
        ]
        return all_equal((pair for pair in found if None not in pair), (gen, width))

    return check


def pcie_link(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        links = [k for ks in read.known("guest.pcie_links", file) for k in ks]
        links += [k for ks in read.known("host.pcie_links", file) for k in ks]
        return agreed(
            (k.gen, k.width, k.narrow) == (1, int(want["width"][1:]), want["width_downgraded"]) for k in links
        )

    return check


def xids(want: Any, read: Read) -> Verdict:
    found = [e for events in read.known("guest.xid_events") for e in events]
    if not found:
        return None
    got = [(e.code, e.pci_address, f"pid={w['pid']}" in e.text) for w, e in zip(want, found, strict=False)]
    wanted = [(w["code"], address(w["bdf"]), True) for w in want]
    by_address = sorted((e.code, e.pci_address) for e in found)
    return by_address == sorted((code, bdf) for code, bdf, _ in wanted) and len(got) == len(want)


def bar_failure(part: Callable[[Any], str]) -> Check:
    """The text of a failure holds what was expected."""

    def check(want: Any, read: Read) -> Verdict:
        texts = [f.text for fs in read.known("guest.bar_failures") for f in fs]
        return any(part(want) in text for text in texts) if texts else None

    return check


# --- pairs ----------------------------------------------------------------------------------------


def every_pair(want: Any, read: Read) -> Verdict:
    link = want.removeprefix("all ")
    return agreed(all(v == link for v in m.gpu_links().values()) for m in read.known("guest.topology"))


def topology_rows(want: Any, read: Read) -> Verdict:
    found = []
    for matrix in read.known("guest.topology"):
        size = len(matrix.gpus)
        found.append([" ".join(v or "X" for v in row[:size]) for row in matrix.links[:size]])
    return all_equal(found, want)


def pairs_with(links: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        found = []
        for matrix in read.known("guest.topology"):
            pairs = {
                tuple(sorted((int(a[3:]), int(b[3:]))))
                for (a, b), link in matrix.gpu_links().items()
                if re.fullmatch(links, link)
            }
            found.append(sorted(map(list, pairs)))
        return all_equal(found, want)

    return check


def cpu_affinity(want: Any, read: Read) -> Verdict:
    verdicts = []
    for m in read.known("guest.topology"):
        got = dict(zip(m.devices, m.cpu_affinity, strict=False))
        wanted = want if isinstance(want, dict) else dict.fromkeys(m.gpus, want)
        verdicts.append(all(got.get(gpu) == cpus for gpu, cpus in wanted.items()))
    return agreed(verdicts)


def numa_affinity(want: Any, read: Read) -> Verdict:
    values = [
        node
        for m in read.known("guest.topology")
        for device, node in zip(m.devices, m.numa_affinity, strict=False)
        if device in m.gpus
    ]
    return all_equal(values, str(want))


def numa(want: Any, read: Read) -> Verdict:
    if isinstance(want, dict):
        verdicts = []
        for found in read.known("guest.gpu_numa"):
            got = {g.gpu: g.numa_node for g in found}
            verdicts.append(all(got.get(gpu) == node for gpu, node in want.items()))
        return agreed(verdicts)
    expected = None if want == "not set" else bool(want)
    return all_equal((vm.numa for vms in read.known("host.vms") for vm in vms), expected)


def nic_count(want: Any, read: Read) -> Verdict:
    return all_equal((sum(d.startswith("NIC") for d in m.devices) for m in read.known("guest.topology")), want)


def nic_rows(want: Any, read: Read) -> Verdict:
    rows = [
        sum(any(row) for d, row in zip(m.devices, m.links, strict=False) if d.startswith("NIC"))
        for m in read.known("guest.topology")
    ]
    return all_equal(rows, want)


def nics(want: Any, read: Read) -> Verdict:
    return agreed(want.items() <= dict(m.nic_names).items() for m in read.known("guest.topology") if m.nic_names)


def p2p(want: Any, read: Read, file: str = "*") -> Verdict:
    """{cap, summary, status, ok_pairs, total_pairs, rows_seen}; pairs are unordered."""
    letters = {"r": "guest.p2p_read", "w": "guest.p2p_write"}
    facts = [letters[letter] for letter in want.get("cap", "r")]
    matrices = [m for fact in facts for m in read.known(fact, file)]
    codes = [[str(c) for c in m.pairs().values()] for m in matrices]
    pairs = [{frozenset(pair): str(c) for pair, c in m.pairs().items()} for m in matrices]
    if not matrices:
        codes, pairs = _access_codes(read, file)
    return agreed(_is_p2p(want, c, p) for c, p in zip(codes, pairs, strict=True))


def _access_codes(read: Read, file: str) -> tuple[list[list[str]], list[dict[frozenset[str], str]]]:
    found = [m for ms in read.known("bench.pairs", file) for m in ms if m.unit == "access"]
    pairs = [
        {
            frozenset((m.gpus[i], m.gpus[j])): "OK" if value else "NS"
            for i, row in enumerate(m.values)
            for j, value in enumerate(row)
            if i != j and value is not None
        }
        for m in found
    ]
    return [list(p.values()) for p in pairs], pairs


def _is_p2p(want: Mapping[str, Any], codes: list[str], pairs: dict[frozenset[str], str]) -> bool:
    granted = sum(code == "OK" for code in pairs.values())
    summary = {
        "all_ok": granted == len(pairs) > 0,
        "none_ok": granted == 0,
        "none_ok_partial": granted == 0,
        "mixed": 0 < granted < len(pairs),
    }
    return (
        summary[want["summary"]]
        and all(code == want.get("status", code) for code in codes)
        and granted == want.get("ok_pairs", granted)
        and len(pairs) == want.get("total_pairs", len(pairs))
    )


def p2p_in(file: str) -> Check:
    return lambda want, read: p2p(want, read, file)


def connectivity(want: Any, read: Read, file: str = "*") -> Verdict:
    _, pairs = _access_codes(read, file)
    summary = {"none": "none_ok", "all": "all_ok"}[want]
    return agreed(_is_p2p({"summary": summary}, [], found) for found in pairs)


def accessible(able: bool) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        _, found = _access_codes(read, "*")
        lists = [
            sorted(sorted(map(int, pair)) for pair, code in pairs.items() if (code == "OK") is able) for pairs in found
        ]
        return agreed((len(got) if isinstance(want, int) else got) == want for got in lists)

    return check


def _off_diagonal(read: Read, file: str, title: str, unit: str) -> list[float]:
    return [
        value
        for matrices in read.known("bench.pairs", file)
        for m in matrices
        if m.unit == unit and re.search(title, m.title)
        for i, row in enumerate(m.values)
        for j, value in enumerate(row)
        if i != j and value is not None
    ]


def unidirectional_range(want: Any, read: Read) -> Verdict:
    found = _off_diagonal(read, "*", "Unidirectional.*Disabled", "GB/s")
    return [min(found), max(found)] == want if found else None


def typical_latency(want: Any, read: Read) -> Verdict:
    found = _off_diagonal(read, "*", "Latency", "us")
    return near(statistics.median(found), want, 0.1) if found else None


def bandwidth_test(file: str) -> Check:
    """{connectivity, unidir, bidir, latency_us} of one run of p2pBandwidthLatencyTest."""

    def check(want: Any, read: Read) -> Verdict:
        figures = {"unidir": ("Unidirectional", "GB/s"), "bidir": ("Bidirectional", "GB/s")}
        figures["latency_us"] = ("Latency", "us")
        verdicts = [connectivity(want["connectivity"], read, file)]
        for key, (title, unit) in figures.items():
            found = _off_diagonal(read, file, title, unit)
            if key in want and found:
                verdicts.append(found[0] == want[key])
        return agreed(verdicts)

    return check


def nvbandwidth(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        matrices = [m for ms in read.known("bench.pairs", file) for m in ms]
        verdicts: list[Verdict] = [len(m.gpus) == want["gpus"] for m in matrices if "gpus" in want]
        if "matrix" in want:
            rows = [[None if v == "N/A" else v for v in row] for row in want["matrix"]]
            verdicts += [[list(row) for row in m.values] == rows for m in matrices]
        values = [v for m in matrices for row in m.values for v in row if v is not None]
        if values and "min" in want:
            verdicts.append((min(values), max(values)) == (want["min"], want["max"]))
        if matrices and "rows_seen" in want:
            seen = sum(any(v is not None for v in row) for row in matrices[0].values)
            verdicts.append(seen == want["rows_seen"])
        if values and "d2d_class" in want:
            verdicts.append(near(statistics.median(values), want["d2d_class"]))
        return agreed(verdicts)

    return check


# --- NCCL and benchmarks --------------------------------------------------------------------------


def transport(want: Any, read: Read) -> Verdict:
    verdicts = []
    for t in read.known("guest.nccl_transports"):
        taken = {name for name in ("p2p", "shm", "net") if getattr(t, name)}
        verdicts.append(len(taken) > 1 if want == "mixed" else taken == {want.lower()})
    return agreed(verdicts)


def transport_detail(want: Any, read: Read) -> Verdict:
    wanted = want if isinstance(want, list) else [re.sub(r" \(.*", "", want)]
    return agreed(
        all(any(w in detail for detail in t.detail) for w in wanted) for t in read.known("guest.nccl_transports")
    )


def init_complete(want: Any, read: Read) -> Verdict:
    found = [t.initialised for t in read.known("guest.nccl_transports")]
    return all_equal((value for value in found if value is not None), want)


def nccl_env(want: Any, read: Read) -> Verdict:
    return agreed(want.items() <= env.items() for env in read.known("guest.nccl_env"))


def no_bandwidth_rows(want: Any, read: Read) -> Verdict:
    return all_equal((len(r.rows) for r in read.known("bench.allreduce")), want) is not False


def rows_each(want: Any, read: Read) -> Verdict:
    return all_equal((sum(not row.in_place for row in r.rows) for r in read.known("bench.allreduce")), want)


def wrong_values(want: Any, read: Read) -> Verdict:
    rows = [row for r in read.known("bench.allreduce") for row in r.rows]
    return sum(row.wrong or 0 for row in rows) == want if rows else None


def bus_bandwidth(want: Any, read: Read) -> Verdict:
    """The tool's average follows from our rows: size / time x 2 (n - 1) / n."""
    verdicts: list[Verdict] = []
    for key, average in want.items():
        for result in read.known("bench.allreduce", f"*{key}*"):
            if all(row.ranks > 1 for row in result.rows):
                rates = [row.size_bytes / row.time_us / 1e3 * 2 * (row.ranks - 1) / row.ranks for row in result.rows]
                verdicts.append(near(statistics.mean(rates), average))
    return agreed(verdicts)


def p2p_disabled(want: Any, read: Read) -> Verdict:
    assert want == "NCCL_P2P_DISABLE=1"
    return all_equal((r.p2p for r in read.known("bench.allreduce", "*p2p-off*")), False)


def serving(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        names = {
            "output_tps": "output_tokens_per_s",
            "total_tps": "total_tokens_per_s",
            "median_tpot_ms": "time_per_output_token_ms",
            "requests": "requests",
            "max_concurrency": "concurrency",
        }
        rows = [row for rows in read.known("bench.serving", file) for row in rows]
        return agreed(
            getattr(row, names[key]) == value
            for row in rows
            for key, value in want.items()
            if key in names and getattr(row, names[key]) is not None
        )

    return check


def nccl_topology(field: Callable[[Any], Any]) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        gpus = [g for t in read.known("guest.nccl_topology") for g in t.gpus]
        return all_equal((field(gpu) for gpu in gpus), want)

    return check


# --- machine --------------------------------------------------------------------------------------


def virt(want: Any, read: Read) -> Verdict:
    found = read.known("guest.virt_kind")
    if want.startswith("none stated"):
        return not found
    return all_equal(found, want.split()[0])


def machine_type(want: Any, read: Read) -> Verdict:
    vms = [vm for vms in read.known("host.vms") for vm in vms]
    if want.startswith("unknown"):
        return all(vm.machine is None and vm.filtered for vm in vms) if vms else None
    word = want.split()[0]
    machines = [vm.machine for vm in vms if vm.machine]
    machines += [c.machine for cs in read.known("host.qemu_commands") for c in cs if c.machine]
    # The last word of Proxmox and QEMU: "pc" and "pc-i440fx-9.0" are i440FX.
    verdicts = [("q35" if "q35" in m else "i440fx") == word for m in machines]
    return agreed([*verdicts, all_equal(map(str, read.known("guest.machine_type")), word)])


def virt_of(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        wanted = want if isinstance(want, dict) else {"virt": want}
        verdicts = [all_equal(read.known("guest.virt_kind", file), wanted["virt"])]
        if "machine_type" in wanted:
            found = map(str, read.known("guest.machine_type", file))
            verdicts.append(all_equal(found, wanted["machine_type"]))
        return agreed(verdicts)

    return check


def numa_nodes(want: Any, read: Read) -> Verdict:
    found = [len(n) for view in ("guest", "host") for n in read.known(f"{view}.numa_nodes")]
    return all_equal(found, want)


def iommu(field: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        found = [*read.known("host.iommu"), *read.known("guest.iommu")]
        values = [getattr(one, field) for one in found]
        return all_equal((v for v in values if v is not None), want)

    return check


def iommu_pt(want: Any, read: Read) -> Verdict:
    found = [*read.known("host.iommu"), *read.known("guest.iommu")]
    return all_equal((one.default_domain == "Passthrough" for one in found), want)


def iommu_cmdline(want: Any, read: Read) -> Verdict:
    lines = [*read.known("host.kernel_cmdline"), *read.known("guest.kernel_cmdline")]
    lines += [c.grub for c in read.known("host.configured_cmdline") if c.grub]
    verdicts = []
    for line in lines:
        words = re.split(r"[\s,]+", line)
        wanted = {k: v if isinstance(v, list) else [v] for k, v in want.items()}
        verdicts.append(all(f"{k}={v}" in words for k, vs in wanted.items() for v in vs))
    return agreed(verdicts)


# --- host and VM ----------------------------------------------------------------------------------


def _vms(read: Read) -> list[Any]:
    return [vm for vms in read.known("host.vms") for vm in vms]


def vm_field(field: str) -> Check:
    return lambda want, read: all_equal((getattr(vm, field) for vm in _vms(read)), want)


def machine_version(want: Any, read: Read) -> Verdict:
    return all_equal((vm.machine for vm in _vms(read)), want)


def hostpci(want: Any, read: Read) -> Verdict:
    default = {"bdf": "", "mapping": None, "pcie": False, "x_vga": False, "romfile": None}
    found = [
        [
            {"i": d.slot, "bdf": ";".join(d.addresses), "mapping": d.mapping}
            | {"pcie": bool(d.pcie), "x_vga": bool(d.x_vga), "romfile": d.romfile}
            for d in vm.hostpci
        ]
        for vm in _vms(read)
        if vm.hostpci or not want
    ]
    return all_equal(found, [default | item for item in want])


def hostpci_count(want: Any, read: Read) -> Verdict:
    return all_equal((len(vm.hostpci) for vm in _vms(read)), want)


def cpu(want: Any, read: Read) -> Verdict:
    return all_equal((vm.cpu.split(",")[0] for vm in _vms(read) if vm.cpu), want)


def cpu_hidden(want: Any, read: Read) -> Verdict:
    hidden = ["hidden=1" in (vm.cpu or "") or bool(re.search(r"kvm=off", vm.args or "")) for vm in _vms(read)]
    return all_equal(hidden, want)


def hypervisor_flag_hidden(want: Any, read: Read) -> Verdict:
    return all_equal(("-hypervisor" in (vm.args or "") for vm in _vms(read)), want)


def in_args(want: Any, read: Read) -> Verdict:
    return agreed(want in vm.args for vm in _vms(read) if vm.args)


def clique(want: Any, read: Read) -> Verdict:
    wanted = [f"device.{slot}.x-nv-gpudirect-clique={number}" for slot, number in want.items()]
    return agreed(all(text in vm.args for text in wanted) for vm in _vms(read) if vm.args)


def snapshot_parent(want: Any, read: Read) -> Verdict:
    return all_equal((vm.config.get("parent") for vm in _vms(read)), want)


def vm_count(want: Any, read: Read) -> Verdict:
    return all_equal(map(len, read.known("host.vms", "qm-list*")), want)


def libvirt_device(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        wanted = want if isinstance(want, list) else [want]
        devices = [d for vms in read.known("host.vms", file) for vm in vms for d in vm.hostpci]
        if not devices:
            return None
        rom = [d.rombar for d in devices]
        addresses = [";".join(d.addresses) for d in devices]
        rom_off = "rom_bar" in wanted[0] and wanted[0]["rom_bar"] == "off"
        return addresses == [w["source"] for w in wanted] and (not rom_off or rom == [False])

    return check


def mappings(want: Any, read: Read) -> Verdict:
    found = [
        [
            {"name": m.mapping, "id": m.vendor_device, "path": m.path, "node": m.node}
            | {"iommugroup": m.iommu_group, "subsystem_id": m.subsystem}
            for m in ms
        ]
        for ms in read.known("host.pci_mappings")
    ]
    return all_equal(found, want)


def groups(want: Any, read: Read) -> Verdict:
    wanted = {int(number): sorted(map(address, devices)) for number, devices in want.items()}
    verdicts = []
    for found in read.known("host.iommu_groups"):
        got = {g.group: sorted(g.devices) for g in found}
        verdicts.append(all(got.get(n) == devices for n, devices in wanted.items()))
    return agreed(verdicts)


def groups_complete(want: Any, read: Read) -> Verdict:
    return all_equal((not missing for missing in read.missing("host.iommu_groups")), want)


def tree_complete(want: Any, read: Read) -> Verdict:
    return all_equal((not missing for missing in read.missing("host.pci_tree")), want)


def gpus_share_group(want: Any, read: Read) -> Verdict:
    shared = [
        any(sum("NVIDIA" in n and "Audio" not in n for n in g.names) > 1 for g in found)
        for found in read.known("host.iommu_groups")
    ]
    return all_equal(shared, want)


def groups_distinct(want: Any, read: Read) -> Verdict:
    return all_equal((all(len(g.devices) == 1 for g in found) for found in read.known("host.iommu_groups")), want)


def pvesh_devices(want: Any, read: Read) -> Verdict:
    known = {w["bdf"]: w["group"] for w in want}
    verdicts = []
    for found in read.known("host.iommu_groups"):
        got = {device: g.group for g in found for device in g.devices}
        verdicts.append(got.items() <= known.items())
    return agreed(verdicts)


def tree_roots(want: Any, read: Read) -> Verdict:
    trees = [*read.known("host.pci_tree"), *read.known("guest.pci_tree")]
    return all_equal(({node.root for node in tree} for tree in trees), set(want))


def common_upstream(want: Any, read: Read) -> Verdict:
    verdicts = []
    for tree in read.known("host.pci_tree"):
        paths = [n.path for n in tree if "Device 738c" in n.name]
        verdicts.append(len(paths) > 1 and all(address(want) in path for path in paths))
    return agreed(verdicts)


def amd_gpus(want: Any, read: Read) -> Verdict:
    found = [sorted(n.address for n in tree if "Device 738c" in n.name) for tree in read.known("host.pci_tree")]
    return all_equal(found, sorted(want)) if isinstance(want, list) else all_equal(map(len, found), want)


def acs_at(want: Any, read: Read) -> Verdict:
    return all_equal((p.pci_address for ps in read.known("host.acs") for p in ps), address(want))


def acs_redirect(want: Any, read: Read) -> Verdict:
    return all_equal((p.redirect for ps in read.known("host.acs") for p in ps), want)


def vfio_ids(want: Any, read: Read) -> Verdict:
    configs = [*read.known("host.module_config"), *read.known("guest.module_config")]
    return agreed((c.value("vfio_pci", "ids") or "").split(",") == want for c in configs)


def iommufd(want: Any, read: Read) -> Verdict:
    return all_equal((str(b) == "iommufd" for b in read.known("host.vfio_backend")), want)


def vfio_addresses(want: Any, read: Read) -> Verdict:
    found = {e.pci_address for es in read.known("host.vfio_errors") for e in es if e.pci_address}
    found |= {d.host_address for cs in read.known("host.qemu_commands") for c in cs for d in c.devices}
    found |= {r.pci_address for rs in read.known("host.held_regions") for r in rs}
    return found == set(want) if found else None


def boot_loader(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        firmware = {"legacy bios": "bios", "uefi": "uefi"}.get(want.get("firmware", ""), "")
        wanted = f"{want['bootloader']}-{firmware}" if "bootloader" in want else "unknown"
        return all_equal(map(str, read.known("host.boot_loader", file)), wanted)

    return check


def pve_version(file: str) -> Check:
    def check(want: Any, read: Read) -> Verdict:
        found = read.known("host.pve_version", file)
        if "pve" in want:
            return all_equal(found, want["pve"])
        return all_equal((v.split(".")[0] for v in found), str(want["pve_major_by_packages"]))

    return check


def fabric(field: Callable[[Any], Any]) -> Check:
    return lambda want, read: all_equal(map(field, read.known("guest.fabric", "*good*")), want)


def worst_link(want: Any, read: Read) -> Verdict:
    return all_equal(read.known("guest.worst_link"), want)


def nccl_version(want: Any, read: Read) -> Verdict:
    return all_equal(read.known("guest.nccl_version"), want)


def platform_cpu(want: Any, read: Read) -> Verdict:
    return agreed(want in (p.cpu or "") for p in read.known("host.platform") if p.cpu)


NO_FACT = "not a fact"
_CONCLUSION = f"{NO_FACT}: a conclusion from facts"
_REMARK = f"{NO_FACT}: a remark for people"
_NOT_KEPT = f"{NO_FACT}: nothing that Peerpath asks about"

KEYS: Mapping[str, Check | str] = {
    "a100": nvbandwidth("*a100*"),
    "acs_at": acs_at,
    "acs_override_effective": _CONCLUSION,
    "acs_redirect_enabled": acs_redirect,
    "advice": _CONCLUSION,
    "all_on_bus": nccl_topology(lambda gpu: gpu.pci_address[:7]),
    "amd_gpu_count_in_excerpt": amd_gpus,
    "arch": _NOT_KEPT,
    "args": in_args,
    "bandwidth_rows": no_bandwidth_rows,
    "bar": _CONCLUSION,
    "bar1_request": bar_failure(lambda want: re.search(r"0x[0-9a-f]+", want)[0]),  # type: ignore[index]
    "bar1_total_mib": _NOT_KEPT,
    "bar_sizes": _NOT_KEPT,
    "bar_status": bar_failure(str),
    "bdf": gpu_bdf,
    "bdfs": vfio_addresses,
    "best_gpu_link": _CONCLUSION,
    "bios_hint": _REMARK,
    "bridge_not_gpu": _REMARK,
    "bridge_prefetch_window": _NOT_KEPT,
    "bus_ids": _NOT_KEPT,
    "busbw_avg": bus_bandwidth,
    "busbw_factor_4ranks": _REMARK,
    "can_pairs": accessible(True),
    "cannot_pairs": accessible(False),
    "channels": _NOT_KEPT,
    "clique": clique,
    "clique_effective_conditions": _CONCLUSION,
    "clique_pairs_allowed": _CONCLUSION,
    "cliques": clique,
    "cmdline_conflict": _CONCLUSION,
    "common_upstream": common_upstream,
    "complete": tree_complete,
    "cpu": cpu,
    "cpu_affinity": cpu_affinity,
    "cpu_hidden": cpu_hidden,
    "devices": pvesh_devices,
    "driver": driver,
    "driver_flavour": driver_flavour,
    "driver_in_use": driver_in_use,
    "env": nccl_env,
    "env_seen_in_command": p2p_disabled,
    "error": _NOT_KEPT,
    "fabric_health_good": fabric(lambda f: f.health),
    "fabric_state_good": fabric(lambda f: f"{f.state}/{f.status}"),
    "fatal": _CONCLUSION,
    "firmware_bug": _NOT_KEPT,
    "gpu_alone_in_group": _CONCLUSION,
    "gpu_bdf": gpu_bdf,
    "gpu_bdfs": amd_gpus,
    "gpu_behind": _REMARK,
    "gpu_count": gpu_count,
    "gpu_count_lspci": lambda want, read: all_equal(read.known("guest.gpu_count_pci"), want),
    "gpu_count_nvidia_smi": lambda want, read: all_equal(read.known("guest.gpu_count_smi"), want),
    "gpu_name": gpu_field("name"),
    "gpu_numa_id": _NOT_KEPT,
    "gpus": _CONCLUSION,
    "gpus_share_group": gpus_share_group,
    "groups": groups,
    "groups_complete": groups_complete,
    "groups_distinct": groups_distinct,
    "guest_viommu": in_args,
    "h100": nvbandwidth("*h100*"),
    "h800": nvbandwidth("*h800*"),
    "hostpci": hostpci,
    "hostpci_count": hostpci_count,
    "hugepages": vm_field("hugepages"),
    "hyperv": virt_of("*hyperv*"),
    "hypervisor_flag_hidden": hypervisor_flag_hidden,
    "init_complete": init_complete,
    "interrupt_remapping": iommu("interrupt_remapping"),
    "iommu_cmdline": iommu_cmdline,
    "iommu_enabled": iommu("enabled"),
    "iommu_pt": iommu_pt,
    "iommu_units": iommu("units"),
    "iommu_vendor": iommu("vendor"),
    "iommufd_in_use": iommufd,
    "journal_bad_host_bdf": _REMARK,
    "latency_disabled_equals_enabled": _CONCLUSION,
    "latency_us_typical": typical_latency,
    "legacy": boot_loader("*legacy*"),
    "likely_cross_socket": _REMARK,
    "link_bad": pcie_link("*bad*"),
    "link_current": printed_link(now=True),
    "link_good": pcie_link("*good*"),
    "link_max": printed_link(now=False),
    "link_speed": nccl_topology(lambda gpu: "empty" if gpu.link is None else gpu.link),
    "link_width": nccl_topology(lambda gpu: 0 if gpu.link is None else gpu.link),
    "machine_type": machine_type,
    "machine_version": machine_version,
    "mappings": mappings,
    "missing_gpu": missing_gpu,
    "missing_gpu_host_bdf_by_showcmd_order": _CONCLUSION,
    "nccl_version": nccl_version,
    "nearest_nic": _CONCLUSION,
    "net": _NOT_KEPT,
    "net_peers": _NOT_KEPT,
    "new": pve_version("pveversion-v.txt"),
    "nic_columns": nic_count,
    "nic_count": nic_count,
    "nic_rows": nic_rows,
    "nics": nics,
    "no_uuids": boot_loader("*no-uuids*"),
    "not_verdict": _CONCLUSION,
    "note_conflict": _REMARK,
    "numa": numa,
    "numa_affinity": numa_affinity,
    "numa_id": nccl_topology(lambda gpu: -1 if gpu.numa_node is None else gpu.numa_node),
    "numa_node": _NOT_KEPT,
    "numa_nodes": numa_nodes,
    "nvidia_gpu_count": no_nvidia,
    "nvlink_elements": nccl_topology(lambda gpu: gpu.nvlinks),
    "nvlink_pairs": pairs_with(r"NV\d+"),
    "oddity": _REMARK,
    "off": bandwidth_test("*off*"),
    "old": pve_version("*old*"),
    "on": bandwidth_test("*.on.*"),
    "other_endpoint_in_group": _CONCLUSION,
    "outlier": _REMARK,
    "p2p": p2p,
    "p2p_bad": p2p_in("*bad*"),
    "p2p_connectivity": connectivity,
    "p2p_good": p2p_in("*good*"),
    "p2p_in_guest": _CONCLUSION,
    "p2p_possible_with_backend": _CONCLUSION,
    "parser_notes": _REMARK,
    "platform_cpu": platform_cpu,
    "q35": libvirt_device("*q35*"),
    "qemu_error": _NOT_KEPT,
    "qemu_i440fx": virt_of("*qemu-i440fx*"),
    "ranks_seen_max": _NOT_KEPT,
    "romoff": libvirt_device("*romoff*"),
    "root_ports": _CONCLUSION,
    "roots": tree_roots,
    "roots_are_virtual": _CONCLUSION,
    "roots_seen": tree_roots,
    "rows_each": rows_each,
    "sglang": serving("*sglang*"),
    "shared_switch": _CONCLUSION,
    "shared_switch_pairs": pairs_with("PIX|PXB"),
    "slowest_pairs_same_switch": _CONCLUSION,
    "snapshot_parent": snapshot_parent,
    "socket_by_slot": _NOT_KEPT,
    "topo": topology_rows,
    "topo_all_pairs": every_pair,
    "topo_gpu_pairs": every_pair,
    "transport": transport,
    "transport_default": _REMARK,
    "transport_detail": transport_detail,
    "transport_forced": transport_detail,
    "transports_seen": transport_detail,
    "two_esp": boot_loader("*two-esp*"),
    "uefi_grub": boot_loader("*uefi-grub*"),
    "unidir_gbs_range": unidirectional_range,
    "unknown_option_on": _REMARK,
    "vendor": _NOT_KEPT,
    "verdict": _CONCLUSION,
    "vfio_ids": vfio_ids,
    "virt": virt,
    "virt_hint": _CONCLUSION,
    "virt_note": _REMARK,
    "vllm_new": serving("vllm-bench-serve*"),
    "vllm_old": serving("*old*"),
    "vm_count": vm_count,
    "windows": virt_of("*windows*"),
    "worst_gpu_link": worst_link,
    "wpr2": bar_failure(lambda want: f"BAR1 is {want['bar1']}"),
    "wrong_values": wrong_values,
    "xids": xids,
}
