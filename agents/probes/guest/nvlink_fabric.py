"""Whether NVLinks carry traffic, and whether the NVSwitch fabric is ready.

https://docs.nvidia.com/deploy/nvidia-smi/ (nvlink -s; -q, Fabric). On NVSwitch machines peer access needs the
fabric state "Completed"; a GPU without NVLink prints nothing.
"""

import re

from agents.facts import Reading
from agents.facts.gpu import FABRIC, NVLINKS, Fabric, NvLinks
from agents.parsing import smi_query
from agents.parsing.nonblank_lines import nonblank_lines
from agents.parsing.smi_value import unquoted
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.guest.gpu_query import read_fabric
from agents.probes.smi_answer import cut, no_answer

_GPU = re.compile(r"^\s*GPU (\d{1,3}): ")
_LINK = re.compile(r"^\s*Link (\d{1,2}): (?P<state>[\d.]+ GB/s|<?inactive>?|\S.{0,40})", re.IGNORECASE)
_NO_LINKS = re.compile(r"(?:Unable to retrieve NVLink information|does not support NVLink)", re.I)
_SH = """nvidia-smi nvlink -s; code=$?
nvidia-smi -q | sed -n '/^GPU /p; /^ *Fabric$/,/^ *Processes/p'
exit "$code\""""


def parse(output: Output) -> Readings:
    return (_links(output), _fabric(output))


def _links(output: Output) -> Reading[tuple[NvLinks, ...]]:
    counts: dict[str, tuple[int, int]] = {}
    lines: list[int] = []
    gpu, all_inactive = "", False
    for number, raw in nonblank_lines(output.stdout):
        line = unquoted(raw)[:200]
        opened, link = _GPU.match(line), _LINK.match(line)
        if opened:
            gpu = f"GPU{opened[1]}"
            counts.setdefault(gpu, (0, 0))
            lines.append(number)
        elif gpu and link:
            active, inactive = counts[gpu]
            carries = link["state"].endswith("GB/s")
            counts[gpu] = (active + carries, inactive + (not carries))
        elif _NO_LINKS.search(line):
            all_inactive = True
    with_links = [NvLinks(g, a, i) for g, (a, i) in counts.items() if a or i]
    if with_links:
        return NVLINKS.known(tuple(with_links), lines=tuple(lines), missing=cut(output))
    if counts or all_inactive or (output.exit_code == 0 and smi_query.parse(output.stdout)):
        return NVLINKS.absent("no GPU reports an NVLink", lines=tuple(lines))
    return no_answer(NVLINKS, output, "NVLink")


def _fabric(output: Output) -> Reading[Fabric]:
    query = smi_query.parse(output.stdout)
    if query is None and _GPU.search(output.stdout):
        return FABRIC.not_run("link states say nothing of the fabric")
    return read_fabric(query) if query else no_answer(FABRIC, output, "Fabric section")


probe = Probe(
    __name__,
    title="NVLinks and NVSwitch fabric",
    commands=(Command(_SH, needs=("nvidia-smi",)),),
    supplies=(NVLINKS, FABRIC),
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+nvlink\s+(?:-s\b|--status)|nvidia-smi\s+-q\b.*\|.*[Ff]abric",
        starts=(
            r"^[\s>]*GPU \d+: .*\(UUID: GPU-\S+\)\s*$",
            r"^\s*Link \d+: (?:[\d.]+ GB/s|<inactive>)",
            r"^\s*Fabric\s*$",
        ),
        belongs=r"^[\s>]*(?:GPU \d+: |GPU [0-9A-F]{8}:|Link \d+: |[A-Z][\w ]+\s*(?:: .*)?$)",
    ),
    timeout_s=40,
    slow=True,
)
