"""MIG slices a GPU, and a sliced GPU has no peer access.

Source: NVIDIA MIG user guide.
"""

from agents.facts.gpu import GPUS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because, seen

SOURCE = "NVIDIA MIG user guide"


def judge(case: Case) -> Advice:
    modes = [gpu.mig for gpu in case.facts.value(GPUS) or ()]
    refs = case.facts.refs(GPUS)
    if any(modes):
        text = f"MIG is on for {sum(bool(m) for m in modes)} GPUs, which forbids peer access"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, refs))
    if modes and all(mode is False for mode in modes):
        return advise(OptionStatus.DONE, seen("MIG is off on every GPU", refs, SOURCE))
    return advise(OptionStatus.POSSIBLE, because("whether MIG is on was not read", SOURCE))


option = Option(
    __name__,
    title="Turn MIG off",
    phase="P2",
    actor=Actor.OPERATOR,
    downtime=Restart.GUEST,
    isolation_cost="the slices’ users share a GPU again",
    rollback="`nvidia-smi -i N -mig 1`, and make the instances again",
    verified_by="`nvidia-smi -q` shows MIG mode disabled; `topo -p2p` is read again",
    changes=("guest.gpus", "guest.p2p_read", "guest.p2p_write"),
    judge=judge,
    by_hand="In the guest, as root, with nothing on the GPUs: `nvidia-smi mig -dci`, `nvidia-smi mig -dgi`, "
    "then `nvidia-smi -mig 0` (`-i N` for one GPU). Where it says that a reset is pending, reboot the guest.",
)
