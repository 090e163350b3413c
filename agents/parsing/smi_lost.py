"""GPUs that the driver lists but can no longer reach.

nvidia-smi prints a line for each, in a form that depends on its version: "Unable to determine the device handle for
GPU 0000:04:00.0: Unknown Error", "… for GPU0000:04:00.0: …", "… for GPU3: 0000:04:00.0: …", "… for gpu 0000:0A:00.0:
GPU is lost. …".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.facts.gpu import Gpu
from agents.parsing.lspci import full_address

_HANDLE = re.compile(
    r"Unable to determine the device handle for GPU\s{0,4}(?:(?P<index>\d{1,3}): )?\s{0,4}"
    r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LostHandle:
    line: int
    index: int | None
    address: str


def find(text: str) -> tuple[LostHandle, ...]:
    handles = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _HANDLE.search(line) if "device handle" in line else None
        if match:
            index = int(match["index"]) if match["index"] else None
            handles.append(LostHandle(number, index, full_address(match["address"])))
    return tuple(handles)


def with_lost(gpus: Sequence[Gpu], handles: Sequence[LostHandle]) -> tuple[Gpu, ...]:
    """All GPUs by index, with the unreachable ones.

    A handle without an index takes the first free index.
    """
    by_index = {gpu.index: gpu for gpu in gpus}
    by_address = {gpu.pci_address: gpu.index for gpu in gpus if gpu.pci_address}
    for handle in handles:
        if handle.address in by_address:
            index = by_address[handle.address]
            by_index[index] = replace(by_index[index], lost=True)
            continue
        hole = next(i for i in range(len(by_index) + 1) if i not in by_index)
        index = hole if handle.index is None or handle.index in by_index else handle.index
        by_index[index] = Gpu(index, pci_address=handle.address, lost=True)
    return tuple(by_index[index] for index in sorted(by_index))
