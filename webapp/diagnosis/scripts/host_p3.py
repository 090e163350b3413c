"""P3 on a Proxmox host: the q35 board and pcie=1 on every GPU, in one step and never apart.

`pcie=1` on any other board keeps the VM from starting: `q35 machine model is not enabled` (qemu-server
9.2.6, PCI.pm). It changes nothing about P2P.
"""

from webapp.diagnosis.case import Restart
from webapp.diagnosis.scripts.cliques import gpu_slots
from webapp.diagnosis.scripts.model import Change, Plan, ScriptError
from webapp.diagnosis.scripts.values import checked, hostpci
from webapp.diagnosis.scripts.vm_plan import vm_plan
from webapp.diagnosis.scripts.vm_state import HIDDEN, VmState

_TRUE = {"1", "on", "yes", "true"}
_RISK = (
    "The guest sees other PCI addresses, and its network interface gets another name (ens18 becomes "
    "enp6s18): without the fix in the guest first it comes up without a network. P2P status is expected "
    "unchanged. With 40 physical address bits GPUs would be lost, so CPU type host comes first."
)


def plan(vm: VmState) -> Plan:
    """Raises ScriptError where the VM has no GPU, or P2's CPU type is not set yet."""
    slots = gpu_slots(vm)
    if not slots:
        raise ScriptError(f"VM {vm.id} has no passed-through GPU, so P3 has nothing to change in it.")
    cpu = vm.get("cpu")
    name = cpu.split(",")[0].removeprefix("cputype=")
    if name not in {"host", "max"} and "phys-bits=host" not in cpu:
        raise ScriptError(
            f"The CPU type of VM {vm.id} is {name or 'the default'}, which gives 40 physical address "
            "bits: on q35 most of the GPUs would get no address space. Do P2 first (CPU type host), "
            "then give the session the host's answers again."
        )
    changes = [Change("machine", vm.get("machine"), _q35(vm.get("machine")))]
    changes += [Change(slot, vm.get(slot), _pcie(vm.get(slot))) for slot in slots]
    return vm_plan(
        vm,
        title="Machine q35 with pcie=1 on every GPU",
        changes=tuple(changes),
        values={"nics": " ".join(_macs(vm))},
        left_out=(
            "The network name is fixed inside the guest, and before this: this script prints how.",
            "SeaBIOS or OVMF stays as it is: q35 needs no other firmware.",
        ),
        downtime=Restart.VM,
        risk=_RISK,
        predicted_effect=(1.0, 1.0),
    )


def _q35(machine: str) -> str:
    """A pinned version stays the same version; options of the line stay."""
    if machine:
        checked("a machine", machine)
    board, _, options = machine.removeprefix("type=").partition(",")
    if "q35" in board:
        return machine
    new = board.replace("i440fx", "q35") if "i440fx" in board else "q35"
    return f"{new},{options}" if options else new


def _pcie(line: str) -> str:
    _, properties = hostpci(line)
    if properties.get("pcie") in _TRUE:
        return line
    return ",".join([*(w for w in line.split(",") if not w.startswith("pcie=")), "pcie=1"])


def _macs(vm: VmState) -> list[str]:
    """Hardware addresses of net0, net1, …: what the guest's fix matches by."""
    nets = [vm.get(key) for key in sorted(vm.config) if key[:3] == "net" and key[3:].isdecimal()]
    words = [word.partition("=")[2] for net in nets for word in net.split(",")[:1]]
    return [checked("a MAC address", word).lower() for word in words if word and not HIDDEN.fullmatch(word)]
