"""How fast outputs are read, and whether reading twice as much takes twice as long.

    python bench/parse_speed.py [--scale 1.0] [--readers]

Prints, for large inputs in their tools' formats, MB/s and the ratio of the time at twice the size; with
--readers the same for every parser on its own case repeated. Then the time for a mixed paste of 5 MB,
and the memory that an upload of 50 MB takes. MB is 10^6 bytes. CPU time, best of three.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.archives import unpack
from agents.benchmark import Benchmark, all_benchmarks
from agents.framing import clean
from agents.probe import Output, Probe
from agents.probes import all_probes
from agents.read import read_raw
from agents.redaction import redact
from tests.agents.mutating import seeds

MB = 1_000_000
READERS: dict[str, Probe | Benchmark] = {**all_probes(), **all_benchmarks()}


def nccl_log(size: int) -> str:
    head = "rig7:4121:4121 [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n"
    return head + _filled(
        size,
        lambda n: (
            f"rig7:{4121 + n % 8}:{4188 + n % 8} [{n % 8}] NCCL INFO Channel {n % 32:02d}/0 : "
            f"{n % 8}[{n % 8}] -> {(n + 1) % 8}[{(n + 1) % 8}] via SHM/direct/direct\n"
            f"rig7:{4121 + n % 8}:{4188 + n % 8} [{n % 8}] NCCL INFO Trees [0] {n % 7}/-1/-1->{n % 8}->-1\n"
        ),
    )


def lspci_vvv(size: int) -> str:
    return _filled(
        size,
        lambda n: (
            f"{n % 256:02x}:{n // 256 % 32:02x}.0 3D controller: NVIDIA Corporation Device 2bb5 (rev a1)\n"
            "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR+\n"
            "\tRegion 1: Memory at 38000000000 (64-bit, prefetchable) [size=128G]\n"
            "\tCapabilities: [60] Express (v2) Endpoint, IntMsgNum 0\n"
            "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <64us\n"
            "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n"
            "\tCapabilities: [2a0 v1] Access Control Services\n"
            "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+\n"
            "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
            "\tKernel driver in use: nvidia\n\n"
        ),
    )


def smi_query(size: int) -> str:
    head = "\n==============NVSMI LOG==============\n\n"
    head += "Driver Version                            : 590.48.01\n"
    head += "CUDA Version                              : 13.1\n\n"
    head += "Attached GPUs                             : 8\n"
    return head + _filled(
        size,
        lambda n: (
            f"GPU 00000000:{n % 8 + 1:02X}:00.0\n"
            "    Product Name                          : NVIDIA L40S\n"
            "    Persistence Mode                      : Enabled\n"
            "    MIG Mode\n        Current                           : N/A\n"
            "    GPU UUID                              : GPU-5f2b9c1e-8d3a-4e7f-9b0c-1a2b3c4d5e6f\n"
            "    PCI\n        GPU Link Info\n            PCIe Generation\n"
            "                Max                       : 4\n"
            "                Current                   : 1\n            Link Width\n"
            "                Max                       : 16x\n"
            "                Current                   : 16x\n"
            "    FB Memory Usage\n        Total                             : 46068 MiB\n"
            "    Utilization\n        Gpu                               : 0 %\n"
            "    Clocks Event Reasons\n        Idle                              : Active\n"
        ),
    )


def kernel_log(size: int) -> str:
    """As kernels fill their log: bridges and regions at the start, then devices and complaints."""
    head = "[    0.000000] Linux version 6.14.8-2-pve (build@host) (gcc 12.2.0)\n"

    def block(n: int) -> str:
        stamp = f"[{n * 0.013:12.6f}]"
        region = f"[mem 0x{n:010x}-0x{n + 4095:010x} 64bit pref]"
        return (
            (f"{stamp} pci 0000:{n % 256:02x}:00.0: BAR 1 {region}: assigned\n" if n < 2000 else "")
            + f"{stamp} usb 1-{n % 9}: new high-speed USB device number {n % 99} using xhci_hcd\n"
            f'{stamp} audit: type=1400 audit(17489.{n}:{n}): apparmor="ALLOWED" operation="open"\n'
        )

    return head + _filled(size, block)


def iommu_groups(size: int) -> str:
    return _filled(
        size,
        lambda n: (
            f"IOMMU Group {n}:\n\t{n % 256:02x}:00.0 3D controller [0302]: NVIDIA Corporation Device "
            f"[10de:2bb5] (rev a1)\n\t{n % 256:02x}:00.1 Audio device [0403]: NVIDIA [10de:22e8]\n"
        ),
    )


def mixed_paste(size: int) -> str:
    """Every case after its prompt, then a kernel's and an NCCL log that fill the size."""
    part = "".join(f"root@rig7:~# {name.partition('.')[2]}\n{clean(raw)}\n" for name, raw in seeds() if name)
    rest = max(0, size - len(part)) // 2
    logs = f"root@rig7:~# dmesg\n{kernel_log(rest)}root@rig7:~# cat nccl.log\n{nccl_log(rest)}"
    return part + logs


LARGE: dict[str, tuple[Callable[[int], str], int, tuple[str, ...]]] = {
    "NCCL log": (nccl_log, 20 * MB, ("guest.nccl_log",)),
    "lspci -vvv": (lspci_vvv, 5 * MB, ("guest.pci_devices", "host.acs", "guest.clique_capability")),
    "nvidia-smi -q": (smi_query, 5 * MB, ("guest.gpu_query",)),
    "dmesg": (kernel_log, 5 * MB, ("guest.dmesg", "host.iommu", "host.vfio")),
    "IOMMU groups": (iommu_groups, 5 * MB, ("host.iommu_groups",)),
}


def _filled(size: int, block: Callable[[int], str]) -> str:
    parts: list[str] = []
    total = number = 0
    while total < size:
        part = block(number)
        parts.append(part)
        total += len(part)
        number += 1
    return "".join(parts)


def timed(work: Callable[[], object], repeat: int = 3) -> float:
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return max(best, 1e-6)


def line(name: str, text: str, twice: str, work: Callable[[str], object]) -> None:
    once, double = timed(lambda: work(text)), timed(lambda: work(twice))
    ratio = double / once * len(text) * 2 / len(twice)
    print(f"{name:44} {len(text) / MB:6.1f} MB {len(text) / MB / once:8.1f} MB/s   x2: {ratio:4.2f}")


def reader_work(name: str) -> Callable[[str], object]:
    return lambda text: READERS[name].parse(Output(text, "", 0))


def every_reader(size: int) -> None:
    cases: dict[str, str] = {}
    for name, raw in seeds():
        cases[name] = max(cases.get(name, ""), clean(raw), key=len)
    for name in sorted(cases.keys() & READERS.keys()):
        case = cases[name] + "\n"
        text = case * (size // len(case) + 1)
        line(name, text[:size], text[:size] + text[:size], reader_work(name))


def upload(size: int) -> None:
    """In a process of its own, so that the peak is this work's."""
    raw = mixed_paste(size).encode()
    packed = gzip.compress(raw, 1)
    del raw
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (member,) = unpack(packed, "log.gz")
    unpacked = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    found = read_raw(member.data, role=None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"upload of {size / MB:.0f} MB: unpacked at {unpacked / 1024:.0f} MiB, read at {peak / 1024:.0f} MiB "
        f"({before / 1024:.0f} MiB before), {time.process_time() - begin:.1f} s, {len(found.items)} parts"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--readers", action="store_true")
    parser.add_argument("--upload", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upload:
        upload(options.upload)
        return
    for title, (make, size, names) in LARGE.items():
        text, twice = make(int(size * options.scale)), make(int(2 * size * options.scale))
        for name in names:
            line(f"{title}: {name}", text, twice, reader_work(name))
    if options.readers:
        every_reader(int(200_000 * options.scale))
    paste = int(5 * MB * options.scale)
    once, twice = mixed_paste(paste), mixed_paste(2 * paste)
    line("mixed paste: recognised and read", once, twice, lambda t: read_raw(t.encode(), role=None))
    line("mixed paste: redacted", once, twice, redact)
    size = int(50 * MB * options.scale)
    subprocess.run([sys.executable, __file__, "--upload", str(size)], check=True)


if __name__ == "__main__":
    main()
