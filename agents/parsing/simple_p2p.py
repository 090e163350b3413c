"""cuda-samples' simpleP2P: who can reach whom, one copy rate, one value check.

simpleP2P.cu: "> Peer access from A (GPU0) -> B (GPU1) : Yes"; its "GB/s" divides by 2**30, so it is GiB/s. The final
check covers what kernels *read* from the peer; it does not check copies into the peer.
"""

import re
from dataclasses import dataclass

from agents.facts.bench import PairMatrix

_QUOTE = re.compile(r"^[\s>|]{1,16}")
_ACCESS = re.compile(r"^Peer access from (.{1,80}) \(GPU(\d{1,3})\) -> (.{1,80}) \(GPU(\d{1,3})\) : (Yes|No)")
_RATE = re.compile(r"cudaMemcpy between GPU(\d{1,3}) and GPU(\d{1,3}): (\d{1,6}\.\d{1,3})\s?GB/s")
_GIB = 1024**3 / 1e9


@dataclass(frozen=True, slots=True)
class Outcome:
    """pair: the two tested GPUs. passed: the value check; None: it did not run.

    waived: no pair has peer access. names: of the listed cards, in order of index.
    """

    matrices: tuple[PairMatrix, ...]
    lines: tuple[int, ...]
    pair: tuple[str, str] | None = None
    passed: bool | None = None
    waived: bool = False
    names: tuple[str, ...] = ()


def parse(text: str) -> Outcome | None:
    """None when no line is simpleP2P's."""
    access: dict[tuple[str, str], float] = {}
    names: dict[str, str] = {}
    rate: tuple[str, str, float] | None = None
    lines: list[int] = []
    passed: bool | None = None
    waived = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = _QUOTE.sub("", raw[:400])
        if peer := _ACCESS.match(line):
            access[peer[2], peer[4]] = float(peer[5] == "Yes")
            names |= {peer[2]: peer[1], peer[4]: peer[3]}
        elif copied := _RATE.search(line):
            rate = copied[1], copied[2], float(copied[3]) * _GIB
        elif "Verification error @ element" in line or line.startswith("Test failed"):
            passed = False
        elif line.startswith("Test passed"):
            passed = True if passed is None else passed
        elif "Peer to Peer access is not available amongst GPUs" in line:
            waived = True
        else:
            continue
        lines.append(number)
    if not access and rate is None:
        return None
    matrices = _matrices(access, rate)
    pair = (rate[0], rate[1]) if rate else None
    listed = tuple(names[gpu] for gpu in sorted(names, key=int))
    return Outcome(matrices, tuple(lines), pair, passed if pair else None, waived, listed)


def _matrices(access: dict[tuple[str, str], float], rate: tuple[str, str, float] | None) -> tuple[PairMatrix, ...]:
    matrices: list[PairMatrix] = []
    if access:
        gpus = tuple(sorted({gpu for pair in access for gpu in pair}, key=int))
        values = tuple(tuple(access.get((a, b)) for b in gpus) for a in gpus)
        matrices.append(PairMatrix("Can access peer", "access", gpus, values))
    if rate:
        a, b, gb_per_s = rate
        values = ((None, gb_per_s), (gb_per_s, None))
        matrices.append(PairMatrix("simpleP2P ping-pong copies", "GB/s", (a, b), values, True))
    return tuple(matrices)
