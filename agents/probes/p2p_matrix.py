"""The reading shared by the five `nvidia-smi topo -p2p` probes."""

from __future__ import annotations

from agents.facts import Fact
from agents.facts.p2p import P2pMatrix
from agents.parsing import topo_p2p
from agents.probe import Output, Readings


def read_matrix(fact: Fact[P2pMatrix], output: Output) -> Readings:
    if output.tool_missing:
        return (fact.unsupported("nvidia-smi is not installed"),)
    found = topo_p2p.parse(output.stdout)
    if found is None:
        first = next((line for line in output.lines if line.strip()), "")
        return (
            fact.unreadable(f"no matrix in the output: {first[:120]}" if first else "no output"),
        )
    matrix, lines, missing = found
    return (fact.known(matrix, lines=lines, missing=missing),)
