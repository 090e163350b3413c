"""The VM as the session knows it: what a host script is made for and refuses to differ from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.facts.vm import VM_ID, VMS, Vm
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts.model import ScriptError
from webapp.diagnosis.scripts.values import checked
from webapp.diagnosis.situation.platform import Platform, outside_kvm
from webapp.diagnosis.situation.vm import with_vm
from webapp.diagnosis.situation.vm_readings import whole

# What redaction puts in the place of a name or UUID (agents.redaction, agents/collector.sh).
HIDDEN = re.compile(r"<[a-z]+-\d{1,6}>|[0-9a-f]{8}-0000-4000-8000-0{6}\d{6}")
NOT_COMPARED = (
    "The VM's name or UUID was hidden in the host's answers, so it is not compared: the VM id and the lines "
    "that change are."
)
_ASK = "Ask the host for it on the step “Ask the host”, by a link or with its script."
_BARE_METAL = "The machine is not a VM, so there is no VM configuration to change."
_NOT_KVM = "The hypervisor is not KVM; these scripts are for Proxmox."


@dataclass(frozen=True, slots=True)
class VmState:
    """One Proxmox VM whose whole configuration was read. config: every key, as written.

    facts: the session's, with `vm.*` of this VM. name and uuid "": not read, or hidden by redaction.
    """

    facts: Facts
    id: int
    name: str
    uuid: str
    config: Mapping[str, str]
    hidden: bool = False

    def get(self, key: str) -> str:
        """ "" when the configuration has no such line."""
        return self.config.get(key, "")

    @property
    def slots(self) -> tuple[str, ...]:
        """ "hostpci0", … in order of number."""
        return tuple(sorted((k for k in self.config if _is_slot(k)), key=lambda key: int(key[7:])))

    @property
    def values(self) -> dict[str, str]:
        """The values that every host script compares before it does anything."""
        return {"vmid": str(self.id), "vm_name": self.name, "vm_uuid": self.uuid}


def vm_state(facts: Facts, vmid: int | None) -> VmState:
    """The VM under diagnosis. Raises ScriptError where it is unknown, not whole or not Proxmox's."""
    if vmid is not None:
        checked("a VM id", str(vmid))
    facts = with_vm(facts, vmid)
    vm_id = facts.value(VM_ID)
    if vm_id is None:
        outside = outside_kvm(facts)
        if outside:
            raise ScriptError(_BARE_METAL if outside is Platform.BARE_METAL else _NOT_KVM)
        raise _unknown_vm(facts)
    vm = _whole_vm(facts, vm_id)
    if vm is None:
        raise ScriptError(
            f"The whole configuration of VM {vm_id} has not been read, so it is not known what a change would replace.",
            typed="Give it the host's answers: `./run script host` prints the script that asks.",
            page=_ASK,
        )
    name, uuid = (_unless_hidden(text) for text in (vm.name, vm.uuid))
    return VmState(
        facts,
        int(checked("a VM id", str(vm_id))),
        checked("a VM name", name) if name else "",
        checked("a UUID", uuid) if uuid else "",
        {**vm.config},
        hidden=(name, uuid) != (vm.name or "", vm.uuid or ""),
    )


def _unless_hidden(text: str | None) -> str:
    return "" if text is None or HIDDEN.fullmatch(text) else text


def _unknown_vm(facts: Facts) -> ScriptError:
    vm_id = facts.best(VM_ID)
    why = f": {vm_id.reading.detail}" if vm_id and vm_id.reading.detail else ""
    return ScriptError(
        f"No Proxmox VM is known to be the one under diagnosis{why}.",
        typed="Run the collector on the host (`./run script host`), or name the VM with --vmid.",
        page=f"{_ASK} Where several VMs have GPUs, the guest's UUID tells which one it is; the guest's "
        "script reads it as root.",
    )


def _whole_vm(facts: Facts, vmid: int) -> Vm | None:
    known = (s.reading.value or () for s in facts.all(VMS))
    return next((vm for vms in known for vm in vms if vm.id == vmid and whole(vm)), None)


def _is_slot(key: str) -> bool:
    return key.startswith("hostpci") and key[7:].isdecimal() and len(key) < 10 and int(key[7:]) < 16
