"""NUMA nodes: `numactl -H` (numactl(8)) and our own lines from /sys/devices/system/node.

numactl prints "node 0 cpus: 0 1 2 …" and "node 0 size: 64215 MB" (MiB, by 2**20); our loop prints
"node0 cpulist: 0-31" and the kernel's "Node 0 MemTotal: 65756404 kB".
"""

import re

from agents.facts.platform import NumaNode
from agents.parsing.nonblank_lines import nonblank_lines

_CPUS = re.compile(r"^\W*node ?(\d{1,4}) (?:cpus|cpulist):\s*([\d\s,-]*)$")
_SIZE = re.compile(r"^\W*node (\d{1,4}) size: (\d{1,12}) MB")
_TOTAL = re.compile(r"^\W*Node (\d{1,4}) MemTotal:\s+(\d{1,15}) kB")
_COUNT = re.compile(r"^\W*available: (\d{1,4}) nodes?\b")
# 8192 CPUs as numactl writes them are 40 kB.
_LINE_CAP = 65536


def parse(text: str) -> tuple[tuple[NumaNode, ...], tuple[int, ...], tuple[str, ...]] | None:
    """The nodes, their 1-based lines, and what is missing; None when there is no node."""
    cpus: dict[int, str] = {}
    sizes: dict[int, int] = {}
    lines: list[int] = []
    count = 0
    for number, raw in nonblank_lines(text):
        line = raw[:_LINE_CAP]
        listed, size, total = _CPUS.match(line), _SIZE.match(line), _TOTAL.match(line)
        if listed:
            cpus[int(listed[1])] = ranges(listed[2])
            lines.append(number)
        elif size:
            sizes[int(size[1])] = int(size[2])
        elif total:
            sizes[int(total[1])] = int(total[2]) // 1024
        elif count_match := _COUNT.match(line):
            count = int(count_match[1])
    if not cpus:
        return None
    nodes = tuple(NumaNode(i, cpus[i], sizes.get(i)) for i in sorted(cpus))
    missing = (f"{count - len(nodes)} of {count} nodes",) if count > len(nodes) else ()
    return nodes, tuple(lines), missing


def ranges(text: str) -> str:
    """ "0-3,8" from "0 1 2 3 8"; a list of ranges stays as it is."""
    words = text.split()
    if len(words) < 2 or not all(word.isascii() and word.isdigit() for word in words):
        return "".join(words)
    numbers = sorted({int(word[:6]) for word in words})
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
