"""The guest's DMI UUID is not that of the VM it is taken for: outputs of two machines are mixed.

Proxmox sets the guest's UUID from the `smbios1` line of the VM.

Source: SMBIOS 3.7, system UUID; Proxmox qemu-server 9.2.6.
"""

from collections.abc import Iterator

from agents.facts.platform import PRODUCT_UUID
from agents.facts.vm import VM_UUID, VMS
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    guest, vm_uuid = (facts.value(PRODUCT_UUID) or "").lower(), facts.value(VM_UUID)
    if not guest:
        return
    if vm_uuid and vm_uuid.lower() != guest:
        yield f"the guest’s UUID {guest} is not the VM’s, {vm_uuid.lower()}", facts.refs(PRODUCT_UUID, VM_UUID)
        return
    vms = facts.value(VMS) or ()
    uuids = {vm.uuid.lower() for vm in vms if vm.uuid}
    if not vm_uuid and uuids and len(uuids) == len(vms) and guest not in uuids:
        yield f"no VM that was read has the guest’s UUID {guest}", facts.refs(PRODUCT_UUID, VMS)


rule = Rule(__name__, "The guest’s UUID is not the VM’s", check)
