"""The purpose on a link's page, proposed from the diagnosis; the operator can change it."""

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI
from webapp.diagnosis.diagnosis import Diagnosis

LONGEST_PURPOSE = 2000  # characters
_UNKNOWN = "Not enough evidence"


def purpose(diagnosis: Diagnosis, vmid: int | None) -> str:
    """One paragraph in plain words: the machine, what is known so far, why the host is asked."""
    facts = diagnosis.facts
    count = facts.value(GPU_COUNT_PCI) or facts.value(GPU_COUNT_SMI)
    gpus = f"{count} GPUs" if count else "the GPUs"
    where = f"VM {vmid}" if vmid else "a virtual machine on your host"
    text = f"We are finding out why {gpus} in {where} are slower together than expected."
    if not diagnosis.headline.startswith(_UNKNOWN):
        text += f" So far: {diagnosis.headline}"
    return (
        f"{text} Only the host knows how the GPUs are wired to it and what the VM was given, so we "
        "ask you for a look; we get no access to it."
    )
