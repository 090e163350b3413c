"""The guest sits on another board than its configuration says: a change waits for a VM start.

Changes to a running VM are pending until it is stopped and started.

Source: Proxmox qemu-server 9.2.6.
"""

from collections.abc import Iterator

from agents.facts.platform import MACHINE_TYPE, MachineType
from agents.facts.vm import VM_MACHINE, VM_QEMU_ARGS
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule, of_one_epoch
from webapp.diagnosis.situation import vm_readings
from webapp.diagnosis.wording import called

_COMPARED = frozenset({MachineType.I440FX, MachineType.Q35})


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    configured, guest = facts.value(VM_MACHINE), facts.value(MACHINE_TYPE)
    if configured is None:
        return
    together = of_one_epoch(facts, MACHINE_TYPE, VM_MACHINE)
    if guest and together and {guest, configured} == _COMPARED:
        text = (
            f"the guest sits on {called(guest)}, the VM’s configuration says {called(configured)}: "
            "the change is pending or the VM was not restarted by its host"
        )
        yield text, facts.refs(MACHINE_TYPE, VM_MACHINE)
    command = facts.value(VM_QEMU_ARGS)
    running = vm_readings.machine_type(command.machine) if command and command.machine else None
    together = of_one_epoch(facts, VM_QEMU_ARGS, VM_MACHINE)
    if running and together and {running, configured} == _COMPARED:
        text = f"the VM runs as {called(running)} and is configured as {called(configured)}: it was not restarted"
        yield text, facts.refs(VM_QEMU_ARGS, VM_MACHINE)


rule = Rule(__name__, "Another board than the one configured", check)
