"""P2 on a Proxmox host: CPU type, visible KVM, clique or its removal, and room for the GPUs' BARs.

One VM stop and start. What the options call unsafe, blocked or without effect is left out, with their
own reason (webapp.diagnosis.options).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webapp.diagnosis.case import Advice, OptionStatus, Restart
from webapp.diagnosis.scripts.cliques import explicit, gpu_slots, with_cliques, without_cliques
from webapp.diagnosis.scripts.model import Change, Plan, ScriptError
from webapp.diagnosis.scripts.values import checked, hostpci, qemu_words
from webapp.diagnosis.scripts.vm_plan import vm_plan
from webapp.diagnosis.scripts.vm_state import VmState
from webapp.diagnosis.situation import qemu_args

GIB_A_GPU = 256
"""Address space a q35 root port spends on a GPU of 128 GiB BAR1 (tried on QEMU 7.2, SeaBIOS)."""

_MAY_STAY = {OptionStatus.POSSIBLE, OptionStatus.DONE}


@dataclass(slots=True)
class _Draft:
    """new: the wanted value by key, in the order the script names them."""

    new: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def plan(vm: VmState, advice: Mapping[str, Advice]) -> Plan:
    """Raises ScriptError where no part of the phase applies to this VM."""
    slots = gpu_slots(vm)
    if not slots:
        raise ScriptError(f"VM {vm.id} has no passed-through GPU, so P2 has nothing to change in it.")
    draft = _Draft()
    _draft_cpu(vm, advice, draft)
    removal = advice["remove_clique"].status is OptionStatus.RECOMMENDED
    if removal:
        draft.new["args"] = without_cliques(vm)
    elif _clique_wanted(vm, advice, draft):
        advised = advice["gpudirect_clique"].status is OptionStatus.RECOMMENDED
        _check_args_show_kvm(vm)
        _draft_hostpci(vm, slots, draft, explicit if advised else VmState.get)
        draft.new["args"] = with_cliques(vm, slots) if advised else vm.get("args")
    elif advice["unhide_kvm"].status is OptionStatus.RECOMMENDED:
        _check_args_show_kvm(vm)
        _draft_hostpci(vm, slots, draft, VmState.get)
    _draft_mmio_window(vm, advice, slots, draft)
    if not draft.new:
        raise ScriptError("P2 has nothing to change in this VM. " + " ".join(draft.left_out))
    draft.left_out.append(_IN_THE_GUEST)
    groups = qemu_args.cliques(qemu_args.split(draft.new.get("args", "")) or (), [] if removal else slots)
    return vm_plan(
        vm,
        title="Remove the clique" if removal else "CPU type, visible KVM and clique",
        changes=tuple(Change(key, vm.get(key), new) for key, new in draft.new.items()),
        values={"cliques": " ".join(f"{s}={i}" for s, i in groups.items() if s in slots)},
        left_out=tuple(draft.left_out),
        downtime=Restart.VM,
        risk=_REMOVED if removal else _RISK,
        predicted_effect=None if removal else advice["gpudirect_clique"].predicted_effect,
    )


_RISK = (
    "The VM is down for some minutes. A clique is a promise to the guest's driver: if the board does not "
    "keep it, GPUs hang or data are silently wrong. Gates 4 to 7 are checked in the guest before the "
    "engine serves anyone, and the rollback takes minutes."
)
_IN_THE_GUEST = "What the guest then sees is checked inside it, by the guest's verify script of P2."
_REMOVED = "The VM is down for some minutes. Afterwards NCCL goes over shared memory again."


def _clique_wanted(vm: VmState, advice: Mapping[str, Advice], draft: _Draft) -> bool:
    """Where it is advised; and where args hold one already, so that it can be verified. Else says why not."""
    judged = advice["gpudirect_clique"]
    if judged.status is OptionStatus.RECOMMENDED:
        return True
    if judged.status in _MAY_STAY and qemu_args.PROPERTY in vm.get("args"):
        qemu_words(vm.get("args"))
        return True
    draft.left_out.append(f"No clique is set: {judged.why[0].text}.")
    return False


def _draft_cpu(vm: VmState, advice: Mapping[str, Advice], draft: _Draft) -> None:
    """CPU type host without hidden=1; other properties of the line stay."""
    now = vm.get("cpu")
    if now:
        checked("a CPU type", now)
    name, *rest = now.split(",") if now else [""]
    name = name.removeprefix("cputype=")
    if name.startswith("custom-"):
        draft.left_out.append(f"The CPU model {name} is the admin's own and stays.")
        return
    if advice["cpu_host"].status is OptionStatus.NO_EFFECT:
        return
    flags = [
        word for word in rest if not word.startswith("hidden=") and not word.removeprefix("phys-bits=").isdecimal()
    ]
    draft.new["cpu"] = ",".join([name if name in {"host", "max"} else "host", *flags])


def _check_args_show_kvm(vm: VmState) -> None:
    if qemu_args.hides_kvm(qemu_args.split(qemu_words(vm.get("args"))) or ()):
        raise ScriptError(
            "The VM's args hide KVM from the guest (-cpu …,kvm=off), and then a clique is ignored. Take that "
            f"out by hand first: `qm set {vm.id} --args '…'`."
        )


def _draft_hostpci(vm: VmState, slots: tuple[str, ...], draft: _Draft, line_of: Callable[[VmState, str], str]) -> None:
    """Whole hostpci lines restated, without x-vga=1. Unchanged ones are not named."""
    for slot in slots:
        new = _without_vga(line_of(vm, slot))
        if new != vm.get(slot):
            draft.new[slot] = new


def _without_vga(line: str) -> str:
    hostpci(line)
    return ",".join(word for word in line.split(",") if not word.startswith("x-vga="))


def _draft_mmio_window(vm: VmState, advice: Mapping[str, Advice], slots: tuple[str, ...], draft: _Draft) -> None:
    """The MMIO window, once the address bits are there and GPUs still go without."""
    if advice["mmio_window"].status is not OptionStatus.RECOMMENDED:
        return
    if draft.new.get("cpu", vm.get("cpu")) != vm.get("cpu"):
        draft.left_out.append(
            "The MMIO window stays as it is: address bits come first (CPU type host). If GPUs still get "
            "no address space afterwards, give the session new answers and make this script again."
        )
        return
    args = draft.new.get("args", vm.get("args"))
    if "pci-hole64-size" in args or "X-PciMmio64Mb" in args:
        return
    gib = 1 << (max(1024, GIB_A_GPU * len(slots)) - 1).bit_length()
    board = "q35" if "q35" in vm.get("machine") else "i440FX"
    word = (
        f"-fw_cfg name=opt/ovmf/X-PciMmio64Mb,string={gib * 1024}"
        if vm.get("bios") == "ovmf"
        else f"-global {board}-pcihost.pci-hole64-size={gib}G"
    )
    draft.new["args"] = f"{args} {word}".strip()
