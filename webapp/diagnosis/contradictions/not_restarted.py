"""What is configured does not run: the clique, or hiding KVM, waits for a VM start by its host.

A reboot inside the guest applies no pending change.

Source: Proxmox qemu-server 9.2.6.
"""

from collections.abc import Iterator

from agents.facts.gpu import CLIQUE_CAPABILITY
from agents.facts.platform import KVM_VISIBLE
from agents.facts.vm import VM_ARGS, VM_CPU_HIDDEN, VM_HOSTPCI, VM_QEMU_ARGS
from webapp.diagnosis.case import Case
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Clash, Rule, of_one_epoch
from webapp.diagnosis.situation import qemu_args, vm_readings


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    if _configures_clique(facts):
        line, seen = facts.best(VM_QEMU_ARGS), facts.value(CLIQUE_CAPABILITY)
        command = line.reading.value if line and line.reading.complete else None
        if command and not facts.newer(VM_ARGS, VM_QEMU_ARGS) and not vm_readings.running_cliques(command):
            text = "the VM’s args set a clique, the running QEMU command line has none"
            yield text, facts.refs(VM_ARGS, VM_QEMU_ARGS)
        elif (
            seen
            and not facts.newer(VM_ARGS, CLIQUE_CAPABILITY)
            and not any(c.present or c.clique_id is not None for c in seen)
        ):
            text = "the VM’s args set a clique, and no GPU in the guest carries one"
            yield text, facts.refs(VM_ARGS, CLIQUE_CAPABILITY)
    seen_since = of_one_epoch(facts, VM_CPU_HIDDEN, KVM_VISIBLE)
    if facts.value(VM_CPU_HIDDEN) and facts.value(KVM_VISIBLE) and seen_since:
        yield "the VM is configured to hide KVM, and the guest sees it", facts.refs(VM_CPU_HIDDEN, KVM_VISIBLE)


def _configures_clique(facts: Facts) -> bool:
    args = facts.value(VM_ARGS)
    slots = [f"hostpci{device.slot}" for device in facts.value(VM_HOSTPCI) or ()]
    return bool(args and qemu_args.cliques(qemu_args.split(args) or (), slots))


rule = Rule(__name__, "Configured, but not running yet", check)
