"""`lscpu`, in any language: labels are translated, values mostly are not.

Format: util-linux lscpu(1), `Label: value` lines; sub-entries may be indented. So the values decide where possible:
two "NN bits" are address sizes, a list of CPUs beside "NUMA … 0" is a node. "Virtualization: AMD-V" is a feature of
the processor, never a sign of a VM.
"""

import re
from dataclasses import dataclass

from agents.facts.platform import NumaNode
from agents.parsing.lspci import LINE_CAP

_PAIR = re.compile(r"^[\s>|]*([^\s:：][^:：]{1,60}?)\s*[:：]\s*(\S.*)$")
_BITS = re.compile(r"^(\d{2})\s*\w{0,6}bits?\b[^,，]{0,20}[,，]\s*\d{2}\s*\w{0,6}bits?\b", re.IGNORECASE)
_MODEL_LABELS = frozenset(("model name", "modellname", "modellbezeichnung", "nom de modèle"))
_MODEL_LABELS |= {"nombre del modelo", "nome modello", "nome do modelo", "nazwa modelu"}
_MODEL_LABELS |= {"имя модели", "型号名称", "モデル名", "모델명"}
_PROCESSOR = re.compile(r"\b(?:Intel\(R\)|AMD (?:EPYC|Ryzen|Opteron)|Xeon|Neoverse|Ampere|CPU @)")
_HYPERVISOR_LABEL = re.compile(r"h[yi]perv|гипервиз|ハイパーバイザ|超管理器|虚拟机管理", re.IGNORECASE)
_VENDORS = frozenset(("KVM", "Microsoft", "VMware", "Xen", "Oracle", "Parallels"))
_NODE_LABEL = re.compile(r"NUMA\D{0,20}(\d{1,4})\b")
_CPU_LIST = re.compile(r"^\d+(?:[-,]\d+)*$")


@dataclass(frozen=True, slots=True)
class Lscpu:
    """None: the text does not show it. hypervisor_flag: from the Flags line, if it is there.

    past_hypervisor: the text includes the place that names a hypervisor, between the processor's own virtualisation
    feature and its caches (util-linux sys-utils/lscpu.c, print_summary).

    lines: the 1-based line of each field that was found, by its name here.
    """

    model: str | None
    phys_bits: int | None
    hypervisor_vendor: str | None
    hypervisor_flag: bool | None
    past_hypervisor: bool
    numa_nodes: tuple[NumaNode, ...]
    lines: dict[str, int]


def parse(text: str) -> Lscpu:
    fields: dict[str, str] = {}
    lines: dict[str, int] = {}
    nodes: dict[int, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        pair = _PAIR.match(raw[: LINE_CAP * 4])
        if pair is None:
            continue
        label, value = pair[1], pair[2].strip()
        node = _NODE_LABEL.search(label)
        field = _field(label, value)
        if node and _CPU_LIST.match(value):
            nodes.setdefault(int(node[1]), value)
            lines.setdefault("numa_nodes", number)
        elif field and field not in fields:
            fields[field], lines[field] = value, number
    bits = _BITS.match(fields.get("phys_bits", ""))
    flags = fields.get("hypervisor_flag")
    return Lscpu(
        fields.get("model"),
        int(bits[1]) if bits else None,
        fields.get("hypervisor_vendor"),
        None if flags is None else "hypervisor" in flags.split(),
        "feature" in fields and lines.get("cache", 0) > lines["feature"],
        tuple(NumaNode(i, cpus) for i, cpus in sorted(nodes.items())),
        lines,
    )


def _field(label: str, value: str) -> str | None:
    if _BITS.match(value):
        return "phys_bits"
    if value in _VENDORS and _HYPERVISOR_LABEL.search(label):
        return "hypervisor_vendor"
    if value.startswith("fpu "):
        return "hypervisor_flag"
    if value in ("AMD-V", "VT-x"):
        return "feature"
    if label.startswith("L1d") and "B" in value:
        return "cache"
    if label.startswith("BIOS"):
        return None
    if label.lower() in _MODEL_LABELS or _PROCESSOR.search(value[:200]):
        return "model"
    return None
