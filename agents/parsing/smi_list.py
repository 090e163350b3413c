"""`nvidia-smi -L`: "GPU 0: NVIDIA L40S (UUID: GPU-…)", below it "  MIG 1g.10gb  Device  0: (UUID: MIG-…)".

Environment reports print the same without the UUID, or several indices at once ("GPU 0,1,2: NVIDIA …"). People hide a
UUID ("GPU-xxxx…", "GPU-[redacted]") before they paste it; then the GPU has no UUID here.
"""

import re
from dataclasses import replace

from agents.facts.gpu import Gpu
from agents.parsing import smi_lost
from agents.parsing.nonblank_lines import nonblank_lines
from agents.parsing.smi_csv import GpuTable
from agents.parsing.smi_value import unquoted

_GPU = re.compile(
    r"^\s*GPU (?P<indices>\d{1,3}(?:,\d{1,3})*): (?P<name>[^(:=]{3,80}?)"
    r"(?: \(UUID: (?:(?P<uuid>GPU-[0-9a-fA-F-]{4,40})|[^()]{1,60})\)?)?\s*$"
)
_MIG = re.compile(r"^\s*MIG \S{1,40}\s+Device\s+\d+: ")
_NOT_LISTED = "memory, link, power and utilisation: a list of names has none"


def parse(text: str) -> GpuTable | None:
    gpus: dict[int, Gpu] = {}
    numbers: list[int] = []
    last: int | None = None
    for number, raw in nonblank_lines(text):
        line = unquoted(raw)
        if last is not None and _MIG.match(line):
            gpus[last] = replace(gpus[last], mig=True)
            numbers.append(number)
            continue
        match = _GPU.match(line)
        if match is None:
            continue
        for index in map(int, match["indices"].split(",")):
            gpus.setdefault(index, Gpu(index, match["name"].strip(), match["uuid"]))
            last = index
        numbers.append(number)
    handles = smi_lost.find(text)
    if not gpus and not handles:
        return None
    lines = sorted({*numbers, *(handle.line for handle in handles)})
    return GpuTable(smi_lost.with_lost(tuple(gpus.values()), handles), tuple(lines), (_NOT_LISTED,))
