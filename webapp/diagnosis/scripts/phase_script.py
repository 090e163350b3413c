"""Makes the script of one phase for one machine, from the facts at hand."""

from collections.abc import Callable
from dataclasses import replace

from agents.facts import View
from agents.facts.vm import VM_ID
from webapp.diagnosis.case import Restart
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.option import PHASES
from webapp.diagnosis.scripts import guest, host_p0, host_p2, host_p3, host_p4
from webapp.diagnosis.scripts.model import Do, PhaseScript, Plan, ScriptError
from webapp.diagnosis.scripts.vm_plan import READS, ROLLBACK_REFUSALS
from webapp.diagnosis.scripts.vm_state import VmState, vm_state
from webapp.diagnosis.scripts.writing import write

ROLES: dict[str, tuple[View, ...]] = {
    "P0": (View.HOST,),
    "P1": (View.GUEST,),
    "P2": (View.HOST,),
    "P3": (View.HOST,),
    "P4": (View.HOST,),
    "P5": (),
}
"""Where each phase has scripts."""

_NOT_HERE = {
    "P1": "P1 changes nothing on the host. Its script is for the guest.",
    "P5": "P5 is other ground (without a VM, a container, another board): the machine is set up anew, which "
    "no script does safely. Its steps stand with each of its options.",
}


def phase_script(
    basis: Diagnosis | Facts, phase: str, do: Do | str, vmid: int | None = None, *, role: View | str = View.HOST
) -> PhaseScript:
    """The script that applies, verifies or rolls back one phase ("P0" … "P5") on the host or in the guest.

    vmid: the VM, where the facts do not tell. Raises ScriptError, in whole sentences, when nothing of
    the phase applies, something needed is not known, or a value in the facts is not what it should be.
    """
    if phase not in PHASES:
        raise ScriptError(f"There is no phase {phase[:20]!r}: {', '.join(PHASES)}.")
    try:
        action, view = Do(do), View(role)
    except ValueError:
        raise ScriptError("A phase is applied, verified or rolled back, on host or guest.") from None
    result = basis if isinstance(basis, Diagnosis) else diagnose(basis, vmid=vmid)
    if vmid is not None and result.facts.value(VM_ID) != vmid:
        result = diagnose(result.facts, vmid=vmid)
    if view is View.GUEST:
        known = result.facts.value(VM_ID)
        plan = guest.plan(phase, action, result)
        return write(plan, phase, action, view, known, guest.parts(action))
    if phase in _NOT_HERE:
        raise ScriptError(_NOT_HERE[phase])
    vm = vm_state(result.facts, vmid)
    plan = _host_plan(phase, action, vm, result)
    return write(plan, phase, action, view, vm.id, host_parts(phase, action))


def _host_plan(phase: str, do: Do, vm: VmState, result: Diagnosis) -> Plan:
    plans: dict[str, Callable[[], Plan]] = {
        "P0": lambda: host_p0.plan(vm, do),
        "P2": lambda: host_p2.plan(vm, result.advice),
        "P3": lambda: host_p3.plan(vm),
        "P4": lambda: host_p4.plan(vm, result.advice),
    }
    if do is Do.ROLLBACK and phase != "P0":
        return _rollback_plan(vm, plans[phase])
    plan = plans[phase]()
    if do is Do.APPLY and not plan.effects:
        done = f"{phase} is done: the VM is configured like this already. Its verify script checks it."
        raise ScriptError(" ".join([done, *plan.left_out]))
    return plan


def _rollback_plan(vm: VmState, plan_of: Callable[[], Plan]) -> Plan:
    """A rollback follows the record that the apply script left on the host, so it needs no facts of today."""
    try:
        plan = plan_of()
    except ScriptError:
        plan = Plan("what its script changed", {}, downtime=Restart.VM)
    return replace(
        plan,
        values=vm.values,
        effects=("every line that the apply script changed, back to what it found and recorded",),
        vm_changes=(),
        reads=READS,
        refusals=ROLLBACK_REFUSALS,
        left_out=(),
        risk="The VM is down for some minutes. Lines that were changed by hand since are refused.",
    )


def host_parts(phase: str, do: Do) -> tuple[str, ...]:
    """The files of sh/ that make up a host script, in order."""
    if phase == "P0":
        return ("base", "vm", "vm_power", "saved", f"p0_{do}")
    parts = {
        Do.APPLY: ("vm_power", "network" if phase == "P3" else "no_network", "vm_apply"),
        Do.VERIFY: ("vm_verify",),
        Do.ROLLBACK: ("vm_power", "vm_rollback"),
    }
    return ("base", "vm", *parts[do])
