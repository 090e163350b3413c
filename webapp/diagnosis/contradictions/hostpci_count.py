"""The VM passes another number of devices through than the guest has GPUs.

Each hostpciN line passes one device.

Source: Proxmox qemu-server 9.2.6, PCI.pm.
"""

from collections.abc import Iterator

from agents.facts.gpu import GPU_COUNT_PCI, GPU_COUNT_SMI
from agents.facts.host import PCI_MAPPINGS
from agents.facts.vm import VM_HOSTPCI, HostPci
from webapp.diagnosis.case import Case
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Clash, Rule, of_one_epoch


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    devices = facts.value(VM_HOSTPCI)
    on_bus = facts.value(GPU_COUNT_PCI) or case.situation.gpu_count
    counted = GPU_COUNT_PCI if facts.value(GPU_COUNT_PCI) else GPU_COUNT_SMI
    if not devices or not on_bus or not of_one_epoch(facts, VM_HOSTPCI, counted):
        return
    others = _other_mappings(facts)
    passed = sum(_count(device) for device in devices if device.mapping not in others)
    if passed != on_bus:
        devices_in = f"{passed} device{'' if passed == 1 else 's'}"
        gpus = f"{on_bus} GPU{'' if on_bus == 1 else 's'}"
        text = f"the VM passes {devices_in} through, the guest has {gpus}, as far as was read"
        yield text, facts.refs(VM_HOSTPCI, GPU_COUNT_PCI, GPU_COUNT_SMI)


def _count(device: HostPci) -> int:
    """Functions of one device are one: 0000:01:00.0;0000:01:00.1."""
    return max(1, len({address.split(".")[0] for address in device.addresses}))


def _other_mappings(facts: Facts) -> set[str]:
    vendors = {m.mapping: m.vendor_device or "10de" for m in facts.value(PCI_MAPPINGS) or ()}
    return {name for name, vendor in vendors.items() if not vendor.lower().startswith("10de")}


rule = Rule(__name__, "Devices passed through and GPUs seen differ in number", check)
