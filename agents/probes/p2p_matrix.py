"""The reading shared by the five `nvidia-smi topo -p2p` probes."""

from agents.facts import Fact
from agents.facts.p2p import P2pMatrix
from agents.parsing import topo_p2p
from agents.probe import Output, Readings, Signature
from agents.probes.smi_answer import no_answer

# The header's first column is blank; rows and header alone do not show the capability.
STARTS = (
    r"^[\s>|`]*(?:\x1b?\[4m)?GPU\d+(?:[\s|]+GPU\d+)*[\s|]*(?:\x1b?\[0?m)?\s*$",
    r"^[\s>|`]*GPU\d+[\s|]+(?:X|OK|CNS|GNS|TNS|DR|NS|U)(?:[\s|]+(?:X|OK|CNS|GNS|TNS|DR|NS|U))*[\s|]*$",
)
# A line with a path type or an affinity column belongs to `topo -m`.
BELONGS = (
    r"^[\s>|`]*(?:GPU\d+[\s|](?!.*\b(?:SYS|NODE|PHB|PXB|PIX|SOC|NV\d+|Affinity)\b)"
    r"|(?:X|OK|CNS|GNS|TNS|DR|NS|U)\b|Legend:|Unknown Error|$)"
)


def read_matrix(fact: Fact[P2pMatrix], output: Output) -> Readings:
    answer = topo_p2p.parse(output.stdout)
    if answer is None:
        return (no_answer(fact, output, "matrix"),)
    matrix, lines, missing = answer
    return (fact.known(matrix, lines=lines, missing=missing),)


def signature(letters: str, score: float) -> Signature:
    """letters: a regular expression for the argument of -p2p."""
    typed = rf"nvidia-smi\s+topo\s+(?:-p2p|--p2p_status)[\s=]+(?:{letters})\b"
    return Signature(typed, STARTS, BELONGS, score)
