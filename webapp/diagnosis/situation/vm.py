"""Which VM is the guest under diagnosis, and what its `vm.*` facts are.

A guest is matched by `smbios1 uuid` = DMI product UUID; else by the operator's VM id, else when only
one VM can be meant. When several can, nothing is derived and `vm.id` says which ones to ask about.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agents.facts import Reading, ReadingKind
from agents.facts.host import IOMMU_GROUPS, PCI_MAPPINGS
from agents.facts.platform import PRODUCT_UUID
from agents.facts.vm import QEMU_COMMANDS, VM_ID, VMS, QemuCommand, Vm
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.situation import vm_readings

NVIDIA = "10de"


@dataclass(frozen=True, slots=True)
class _Seen:
    """One mention of a VM: its configuration in one output, or one QEMU command line."""

    sourced: Sourced
    vm: Vm | None = None
    command: QemuCommand | None = None

    @property
    def id(self) -> int | None:
        return self.vm.id if self.vm else self.command.vm_id if self.command else None

    @property
    def uuid(self) -> str | None:
        raw = self.vm.uuid if self.vm else self.command.uuid if self.command else None
        return raw.lower() if raw else None


def with_vm(facts: Facts, vmid: int | None = None) -> Facts:
    """The facts with `vm.*` added for the VM under diagnosis; unchanged when no VM was seen."""
    seen = _mentions(facts)
    if not seen:
        return facts
    groups = _by_vm(seen)
    choice = facts.scope()
    chosen, problem = _choose(choice, groups, vmid)
    if chosen is None:
        first = seen[0].sourced
        derived_from = [(Sourced(VM_ID.not_run(problem), first.source, first.epoch), first.reading.fact_id)]
    else:
        derived_from = _derive(groups[chosen])
    others = {k: v for k, v in facts.readings.items() if not k.startswith("vm.")}
    origins: dict[str, frozenset[str]] = {}
    for item, origin in derived_from if chosen else ():
        fact_id = item.reading.fact_id
        origins[fact_id] = origins.get(fact_id, choice.reads.every) | {origin}
    derived = Facts.of(item for item, _ in derived_from).readings
    return Facts({**others, **derived}, facts.changes, {**facts.origins, **origins})


def _mentions(facts: Facts) -> list[_Seen]:
    """Every configuration and command line, the ones that count first."""
    vms = [_Seen(s, vm=vm) for s in _known(facts.all(VMS)) for vm in s.reading.value or ()]
    commands = [
        _Seen(s, command=command) for s in _known(facts.all(QEMU_COMMANDS)) for command in s.reading.value or ()
    ]
    return commands + vms


def _known(items: Iterable[Sourced]) -> list[Sourced]:
    return [s for s in items if s.reading.kind is ReadingKind.KNOWN]


def _by_vm(seen: list[_Seen]) -> dict[str, list[_Seen]]:
    """Mentions by VM: by id, by UUID where one output has only that, else one nameless VM."""
    id_of = {item.uuid: item.id for item in seen if item.uuid and item.id is not None}
    groups: dict[str, list[_Seen]] = {}
    for item in seen:
        number = item.id if item.id is not None else id_of.get(item.uuid or "")
        name = str(number) if number is not None else item.uuid or "the VM without an id"
        groups.setdefault(name, []).append(item)
    return groups


def _choose(facts: Facts, groups: dict[str, list[_Seen]], vmid: int | None) -> tuple[str | None, str]:
    """The group meant, or None and what to ask."""
    if vmid is not None:
        return _by_id(groups, vmid)
    if len(groups) == 1 and not facts.exception(lambda facts: _is_another(facts, *groups.values())):
        return next(iter(groups)), ""
    uuid = (facts.value(PRODUCT_UUID) or "").lower()
    if uuid:
        matched = [name for name, group in groups.items() if any(s.uuid == uuid for s in group)]
        if matched:
            return matched[0], ""
        groups = {n: g for n, g in groups.items() if not any(s.uuid for s in g)}
        if not groups:
            return None, "no VM that was read has the guest’s UUID: ask which VM it is"
    with_gpu = [name for name, group in groups.items() if _may_have_gpus(facts, group)]
    candidates = with_gpu or list(groups)
    if len(candidates) == 1:
        return candidates[0], ""
    return None, f"ask which VM: {', '.join(sorted(candidates))}"


def _is_another(facts: Facts, group: list[_Seen]) -> bool:
    """Whether the one VM that was read has a UUID, and it is not the guest's."""
    uuid = (facts.value(PRODUCT_UUID) or "").lower()
    uuids = {seen.uuid for seen in group if seen.uuid}
    return bool(uuid and uuids) and uuid not in uuids


def _by_id(groups: dict[str, list[_Seen]], vmid: int) -> tuple[str | None, str]:
    nameless = [name for name in groups if not name.isdigit()]
    if str(vmid) in groups:
        return str(vmid), ""
    if len(nameless) == 1:
        return nameless[0], ""
    return None, f"VM {vmid} is not in what was read: {', '.join(sorted(groups))}"


def _may_have_gpus(facts: Facts, group: list[_Seen]) -> bool:
    """Whether a device is passed through that is not known to be something else than an NVIDIA one."""
    devices = [device for seen in group if seen.vm for device in seen.vm.hostpci]
    other_mappings, other_addresses = _not_nvidia(facts)
    return any(
        not (device.mapping in other_mappings if device.mapping else False)
        and not (bool(device.addresses) and set(device.addresses) <= other_addresses)
        for device in devices
    ) or any(seen.command and seen.command.devices for seen in group)


def _not_nvidia(facts: Facts) -> tuple[set[str], set[str]]:
    """Mappings and addresses that some output shows to be another vendor's."""
    vendors: dict[str, set[str]] = {}
    for mapping in facts.value(PCI_MAPPINGS) or ():
        if mapping.vendor_device:
            vendors.setdefault(mapping.mapping, set()).add(mapping.vendor_device[:4].lower())
    addresses = {
        address
        for group in facts.value(IOMMU_GROUPS) or ()
        for address, name in zip(group.devices, group.names, strict=False)
        if name and "nvidia" not in name.lower()
    }
    return {name for name, makers in vendors.items() if NVIDIA not in makers}, addresses


def _derive(group: list[_Seen]) -> list[tuple[Sourced, str]]:
    """Readings of every mention, each with the fact that it is derived from; of older ones only those that a
    newer absence does not deny."""
    by_fact: dict[str, list[tuple[Sourced, str]]] = {}
    for seen in sorted(group, key=_recency, reverse=True):
        for reading in _readings(seen):
            newer = by_fact.setdefault(reading.fact_id, [])
            if not newer or newer[0][0].reading.kind is ReadingKind.KNOWN:
                newer.append((replace(seen.sourced, reading=reading), seen.sourced.reading.fact_id))
    return [item for items in by_fact.values() for item in items]


def _recency(seen: _Seen) -> tuple[int, bool, bool, int]:
    """Within an epoch what runs comes before what is configured, a whole config before a part."""
    complete = bool(seen.vm and vm_readings.whole(seen.vm))
    return (seen.sourced.epoch, seen.command is not None, complete, seen.sourced.order)


def _readings(seen: _Seen) -> list[Reading[object]]:
    if seen.vm:
        return vm_readings.of_config(seen.vm)
    read = seen.sourced.reading
    if seen.command is None:
        return []
    cut = not read.complete or seen.command.machine is None
    return vm_readings.of_command(seen.command, read.lines, cut=cut)
