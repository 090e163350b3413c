"""A value in one line of words."""

from __future__ import annotations

from agents.facts.bench import Timing
from agents.facts.host import CpuGovernor
from agents.facts.kernels import Figures, MemoryResult, MemoryRow
from agents.facts.vm import HostPci, Vm
from webapp.presenting.summaries import LONGEST, summary


def test_a_vm_says_what_decides_about_p2p() -> None:
    vm = Vm(
        id=128,
        name="llm",
        machine="q35",
        hostpci=(
            HostPci(slot=0, addresses=("0000:01:00.0",), pcie=True),
            HostPci(slot=1, mapping="gpus"),
            HostPci(slot=2, mapping="gpus"),
        ),
        args="-cpu host",
    )
    words = "VM 128 llm machine q35 hostpci 0000:01:00.0 pcie=1, 2 × gpus args -cpu host"
    assert summary((vm, Vm(id=129, name="other"))) == f"2: {words}"
    assert summary((Vm(id=1, name="a"), Vm(id=2, name="b"))) == "1 × a, 1 × b"
    assert len(summary((vm,) * 9)) <= LONGEST


def test_memory_says_the_fastest_of_each_gpu() -> None:
    figures = Figures(1.0, Timing.DEVICE, "queued")
    rows = tuple(
        MemoryRow(gpu, "read", 2**29, 2**29, 2**25, rate, figures)
        for gpu, rate in (("0", 4100.0), ("0", 4295.4), ("1", 3990.0))
    )
    assert summary(MemoryResult(rows)) == "GPU 0 4295 GB/s, GPU 1 3990 GB/s"


def test_a_governor_says_on_how_many_cpus_and_through_which_driver() -> None:
    mixed = CpuGovernor({"performance": 4, "schedutil": 8}, "acpi-cpufreq")
    assert summary(mixed) == ("schedutil on 8 of 12 CPUs, performance on 4 of 12 CPUs; driver acpi-cpufreq")
    assert summary(CpuGovernor({"powersave": 2})) == "powersave on 2 of 2 CPUs"
