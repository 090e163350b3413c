"""Path types between GPUs and NICs, and each GPU's NUMA node.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -m). In a guest the types describe the emulated PCI tree, so they say
nothing about the GPUs' real places. NUMA N/A: the device reports no node, as usual in a VM.
"""

import re

from agents.facts import Reading
from agents.facts.gpu import GPU_NUMA, GpuNuma
from agents.facts.p2p import TOPOLOGY, WORST_LINK
from agents.parsing import topo_matrix
from agents.parsing.topo_matrix import Topology
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import no_answer

_FACTS = (TOPOLOGY, WORST_LINK, GPU_NUMA)


def parse(output: Output) -> Readings:
    matrix = topo_matrix.parse(output.stdout)
    if matrix is None:
        return tuple(no_answer(fact, output, "topology matrix") for fact in _FACTS)
    gaps = _without_nvlink(output.stdout)
    missing = (*matrix.missing, *gaps)
    known = TOPOLOGY.known(matrix.matrix, lines=matrix.lines, missing=missing)
    return (known, _worst(matrix, gaps), _numa(matrix))


def _without_nvlink(text: str) -> tuple[str, ...]:
    """What `topo -mp` lacks: it shows PCIe paths only, also between GPUs with NVLinks, and its legend has no NV#."""
    legend = re.search(r"^[\s>]*PIX\s+= ", text, re.MULTILINE)
    return ("NVLinks: this is the form that leaves them out (-mp)",) if legend and "NV#" not in text else ()


def _worst(matrix: Topology, gaps: tuple[str, ...]) -> Reading[str]:
    """The farthest pair of the matrix; the reading names cut rows, which may hide a farther one."""
    gpus = matrix.matrix.gpus
    links = matrix.matrix.gpu_links()
    worst = topo_matrix.worst(list(links.values()))
    if worst is None:
        return WORST_LINK.absent("no pair of GPUs: the matrix shows one", lines=matrix.lines)
    unseen = [f"{a}–{b}" for a in gpus for b in gpus if a < b]
    unseen = [p for p in unseen if not {tuple(p.split("–")), tuple(p.split("–")[::-1])} & set(links)]
    hidden = tuple(unseen[:8]) or tuple(gap for gap in matrix.missing if gap == "the header row")
    return WORST_LINK.known(worst, lines=matrix.lines, missing=(*hidden, *gaps))


def _numa(matrix: Topology) -> Reading[tuple[GpuNuma, ...]]:
    nodes, unread = [], []
    for name, cell in matrix.numa:
        if not name.startswith("GPU"):
            continue
        if cell == "N/A" or cell.isdecimal():
            nodes.append(GpuNuma(name, int(cell) if cell.isdecimal() else None))
        else:
            unread.append(f"{name}, which has several nodes: {cell}")
    printed = {name for name, _ in matrix.numa}
    unread += [gpu for gpu in matrix.matrix.gpus if gpu not in printed]
    if not nodes:
        return GPU_NUMA.not_run("the matrix shows no NUMA column", lines=matrix.lines)
    return GPU_NUMA.known(tuple(nodes), lines=matrix.lines, missing=tuple(unread))


probe = Probe(
    __name__,
    title="Topology matrix",
    commands=(Command("nvidia-smi topo -m", needs=("nvidia-smi",)),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+topo\s+(?:-mp?\b|--matrix)",
        starts=(
            r"^[\s>|`]*(?:\x1b?\[4m)?GPU\d+[\s|].*(?:\bCPU Affinity|\bNIC\d+|\bmlx\d_\d+|\.\.\.)",
            # A header of GPUs alone, as a narrow terminal wraps it; the parser decides about the next lines.
            r"^[\s>|`]*GPU\d+(?:[\s|]+GPU\d+)+[\s|]*(?:C|CP|CPU|CPU Af?f?i?n?i?t?)?$",
            r"^[\s>|`]*GPU\d+[\s|]+(?:X[\s|]+)?(?:SYS|NODE|PHB|PXB|PIX|SOC|NV\d+)\b",
        ),
        belongs=r"^[\s>|`]*(?:(?:GPU|NIC)\d+\b|mlx\d_|Legend:|NIC Legend:|Affinity\b"
        r"|(?:X|SYS|NODE|PHB|PXB|PIX|SOC|NV\d+|NV#)(?:\s|$)|$)"
        # The part that a narrow terminal puts on the next line.
        r"|^[a-z]{1,8}\s+NUMA |^[-,\d]+(?:\s+[-,\d]+|\s+N/A)*\s*$",
    ),
    timeout_s=20,
    slow=True,
)
