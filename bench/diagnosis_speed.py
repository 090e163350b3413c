"""How long a full diagnosis takes, from facts to every text and the JSON of the contract.

    python bench/diagnosis_speed.py [--runs 30]

Cases: the sample at its last stage, and a synthetic machine of 16 GPUs with every kind of evidence, at
four concurrencies. Prints milliseconds: the median and the slowest of the runs, after one to warm up.
Aims: diagnose below 50 ms for the sample and below 150 ms for 16 GPUs; exit 1 when a median is above.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agents.facts.bench import COPY, DELIVERY, CopyPath, CopyResult, CopyRow, DeliveryResult, Timing
from agents.facts.gpu import CLIQUE_CAPABILITY, GPU_NUMA, GPUS, Clique, GpuNuma
from agents.facts.host import ACS, GPU_PATHS, PCI_TREE, AcsPort, GpuPath, PciNode
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode
from agents.facts.platform import KVM_VISIBLE, NUMA_NODES, VIRT_KIND, NumaNode
from agents.facts.vm import VMS, HostPci, Vm
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Observed, Parallelism
from tests.webapp.diagnosis.building import EIGHT, facts_of, matrix, topology
from tests.webapp.diagnosis.sample_facts import facts_at
from tests.webapp.diagnosis.scenarios import LARGE, PRO
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts
from webapp.presenting.diagnosis_json import as_json

COUNT = 16
SIZES = [1 << power for power in range(10, 29)]


def sixteen() -> Facts:
    """A KVM guest of sixteen GPUs behind four switches over two sockets, read whole."""
    names = [f"0000:{i + 1:02x}:00.0" for i in range(COUNT)]
    ordered = [(a, b) for a in range(COUNT) for b in range(COUNT) if a != b]
    gpus = tuple(replace(EIGHT[0], index=i, name=PRO, vram_mib=97887) for i in range(COUNT))
    copies = tuple(
        CopyRow(CopyPath.PEER, str(a), str(b), size, 4 + size / 4e4, Timing.DEVICE)
        for a, b in ordered
        for size in SIZES
    )
    paths = tuple(GpuPath(n, f"0000:{i // 8:x}0", f"p{i // 4}", f"s{i // 4}", i // 8) for i, n in enumerate(names))
    nodes = tuple(PciNode(n, f"0000:{i // 8:x}0", (f"p{i // 4}",), PRO) for i, n in enumerate(names))
    slots = tuple(HostPci(i, (name,)) for i, name in enumerate(names))
    rates = ((1, 11.0), (8, 70.0), (64, 250.0), (256, 700.0))
    return facts_of(
        VIRT_KIND.known("kvm"),
        KVM_VISIBLE.known(True),
        GPUS.known(gpus),
        TOPOLOGY.known(topology(COUNT, "PHB")),
        P2P_READ.known(matrix(COUNT, P2pCode.NS)),
        P2P_WRITE.known(matrix(COUNT, P2pCode.NS)),
        CLIQUE_CAPABILITY.known(tuple(Clique(name, None) for name in names)),
        GPU_NUMA.known(tuple(GpuNuma(f"GPU{i}", i // 8) for i in range(COUNT))),
        NUMA_NODES.known((NumaNode(0, "0-63"), NumaNode(1, "64-127"))),
        NCCL_TRANSPORTS.known(NcclTransports(shm=512)),
        DELIVERY.known(DeliveryResult({f"{a}->{b}": True for a, b in ordered})),
        COPY.known(CopyResult(copies)),
        GPU_PATHS.known(paths),
        PCI_TREE.known(nodes),
        ACS.known(tuple(AcsPort(f"0000:{i:02x}:00.0", True, "ReqRedir+") for i in range(24))),
        VMS.known((Vm(id=128, hostpci=slots, config={"cores": "128"}, key_lines={"cores": 1}),)),
        MODEL.known(LARGE),
        PARALLELISM.known(Parallelism(tp=COUNT)),
        OBSERVED.known(tuple(Observed(c, (rate, rate * 1.1)) for c, rate in rates)),
    )


def milliseconds(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median and slowest."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), max(times)


def texts(result: Diagnosis) -> None:
    as_json(result)
    for_a_manager(result)
    for_an_engineer(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    missed = False
    for name, facts, aim in (("sample @after", facts_at("after"), 50), ("16 GPUs", sixteen(), 150)):
        median, slowest = milliseconds(partial(diagnose, facts), runs)
        result = diagnose(facts)
        texts_ms, _ = milliseconds(partial(texts, result), runs)
        missed = missed or median > aim
        print(
            f"{name:<14} diagnose {median:6.1f} ms (slowest {slowest:.1f}; aim < {aim})"
            f"   JSON and texts {texts_ms:6.1f} ms"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
