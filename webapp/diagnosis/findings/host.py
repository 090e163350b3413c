"""What the hypervisor's outputs mean for P2P inside one VM.

Source: Linux vfio_iommu_type1 and drivers/pci/p2pdma.c; Proxmox qemu-server 9.2.6, PCI.pm.
"""

from agents.facts.host import GPU_PATHS, IOMMU_GROUPS, PCI_TREE, PLATFORM
from agents.facts.vm import VM_HOSTPCI, VM_ID
from agents.facts.workload import HOST_ROOT, MAY_CHANGE, WHY_VM
from webapp.diagnosis.case import Case, Finding
from webapp.diagnosis.option import because, seen
from webapp.diagnosis.wording import answer_words


def separate_groups(case: Case) -> Finding | None:
    """Every group of a VM lies in one container, and AMD Zen forwards between root ports."""
    groups, paths = case.facts.value(IOMMU_GROUPS) or (), case.facts.value(GPU_PATHS) or ()
    roots = {path.root_complex for path in paths}
    if len(roots) < 2 and len(groups) < 2:
        return None
    refs = case.facts.refs(IOMMU_GROUPS, GPU_PATHS, PLATFORM)
    text = "separate IOMMU groups do not forbid P2P inside one VM: they share one VFIO container"
    claims = [because(text, "Linux vfio_iommu_type1", refs)]
    platform = case.facts.value(PLATFORM)
    if len(roots) > 1 and platform and any(z in (platform.cpu or "") for z in ("EPYC", "Ryzen")):
        text = f"{len(roots)} root complexes do not forbid it on this platform: AMD Zen forwards between root ports"
        claims.append(because(text, "Linux drivers/pci/p2pdma.c", refs))
    return Finding("separate_groups", "info", tuple(claims))


def dummy_bridges(case: Case) -> Finding | None:
    nodes = case.facts.value(PCI_TREE) or ()
    if not any("Dummy Host Bridge" in node.name for node in nodes):
        return None
    text = "“PCIe Dummy Host Bridge” is a placeholder on each root complex; it isolates nothing"
    return Finding("dummy_bridges", "info", (because(text, "PCI ID repository, 1022:153d", case.facts.refs(PCI_TREE)),))


def mapping_pool(case: Case) -> Finding | None:
    """Several slots that draw from one mapping."""
    names = [d.mapping for d in case.facts.value(VM_HOSTPCI) or () if d.mapping]
    shared = sorted({name for name in names if names.count(name) > 1})
    if not shared:
        return None
    text = (
        f"{names.count(shared[0])} slots draw from the mapping {shared[0]}, the first free device wins: "
        "mapping pools give no fixed order of slots to GPUs. One mapping a GPU would"
    )
    return Finding("mapping_pool", "info", (because(text, "qemu-server 9.2.6, PCI.pm", case.facts.refs(VM_HOSTPCI)),))


def host_questions(case: Case) -> Finding | None:
    """Root, what may change, why a VM: asked once the VM matters."""
    facts = case.facts
    root, may, why = facts.value(HOST_ROOT), facts.value(MAY_CHANGE), facts.value(WHY_VM)
    matters = root or may or facts.value(VM_ID) is not None or case.fails("driver")
    if not matters or not case.situation.in_kvm:
        return None
    answers = (
        f"root on the host: {answer_words(*filter(None, (root,)))}",
        f"may change: {answer_words(*may or ())}",
        f"why it is a VM: {answer_words(*filter(None, (why,)))}",
    )
    claim = seen("; ".join(answers), facts.refs(HOST_ROOT, MAY_CHANGE, WHY_VM), "questions to the host’s administrator")
    return Finding("host_questions", "info", (claim,))


RULES = (separate_groups, dummy_bridges, mapping_pool, host_questions)
