"""A container on the hypervisor: the host's driver owns the GPUs, so no clique is needed.

Source: Proxmox VE administration guide, containers.
"""

from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, no_vm


def judge(case: Case) -> Advice:
    outside = no_vm(case)
    if outside:
        return outside
    text = (
        "P2P would be the host driver’s own; weaker isolation, one driver version for host and container, "
        "and no public report with eight GPUs was found"
    )
    return advise(OptionStatus.POSSIBLE, because(text, "Proxmox VE administration guide, containers"))


option = Option(
    __name__,
    title="An LXC container in place of the VM",
    phase="P5",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.HOST,
    isolation_cost="the NVIDIA driver runs in the host’s kernel, and the container shares that kernel",
    rollback="unload the driver, bind the GPUs to vfio-pci, start the VM",
    verified_by="the whole ladder, then an A/B of the workload",
    changes=(
        "guest.virt_kind",
        "guest.machine_type",
        "guest.container",
        "guest.p2p_read",
        "guest.p2p_write",
        "guest.topology",
        "guest.worst_link",
        "guest.numa_nodes",
        "guest.gpu_numa",
        "guest.nccl_transports",
    ),
    judge=judge,
)
