"""What kind of virtual machine this is, if any, and whether its guest can see KVM's signature.

systemd-detect-virt(1) reads CPUID, then firmware names: "qemu" means that there was no KVM signature
(src/basic/virt.c). Many guests lack that tool, so the snippet also prints the answers of lscpu, the clock sources,
Xen's /sys/hypervisor and DMI. NVIDIA's driver only reads CPUID (open kernel modules 595.45, hypervisor.c), so a
hidden KVM changes its answers about peers.
"""

from agents.facts import Reading
from agents.facts.platform import KVM_VISIBLE, VIRT_KIND
from agents.parsing import virt_signs
from agents.parsing.virt_signs import CLOCKS, CONTAINERS, DETECTED, FLAG, VENDOR, Signs
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""echo "arch: $(uname -m)"
grep -q "[Mm]icrosoft" /proc/sys/kernel/osrelease && echo "kernel: wsl"
t=systemd-detect-virt
command -v $t >/dev/null && echo "$t: $($t -v 2>/dev/null)" && echo "$t container: $($t -c 2>/dev/null)"
flags=$(grep -m1 ^flags /proc/cpuinfo)
case $flags in *" hypervisor"*) echo "cpu hypervisor flag: yes" ;; ?*) echo "cpu hypervisor flag: no" ;; esac
command -v lscpu >/dev/null && echo "lscpu hypervisor vendor: $(lscpu | sed -n "s/^Hypervisor vendor: *//p")"
f=/sys/hypervisor/type; [ -r $f ] && echo "hypervisor type: $(cat $f)"
c=$(cat /sys/devices/system/clocksource/clocksource0/available_clocksource) && echo "clocksources: $c"
cd /sys/class/dmi/id && grep -s . sys_vendor product_name product_version | sed 's/^/dmi /; s/:/: /'
exit 0"""

# Kinds of VM whose CPUID signature is not KVM's; "qemu" is emulation or a hidden KVM.
_NOT_KVM = frozenset(("none", "qemu", "vmware", "xen", "oracle", "parallels", "microsoft"))


def parse(output: Output) -> Readings:
    signs = virt_signs.parse(output.stdout)
    if signs.answers:
        return (_kind(signs), _kvm(signs))
    facts = (VIRT_KIND, KVM_VISIBLE)
    if output.tool_missing:
        return tuple(f.unsupported("no tool answered") for f in facts)
    return tuple(f.unreadable("no word that systemd-detect-virt prints") for f in facts)


def _kind(signs: Signs) -> Reading[str]:
    lines = signs.where(DETECTED, "kernel", VENDOR, CLOCKS)
    if signs.answers.get("kernel") == "wsl" or signs.vm == "wsl":
        return VIRT_KIND.known("wsl", lines=lines)
    if signs.vm in CONTAINERS and not signs.vm.startswith("lxc"):
        why = f"{signs.vm} is a container; systemd-detect-virt -v says what is below it"
        return VIRT_KIND.not_run(why, lines=lines)
    if signs.vm == "none" and signs.container.startswith("lxc"):
        return VIRT_KIND.known(signs.container, lines=lines)
    if signs.vm == "microsoft" and signs.firmware == "qemu":
        # A QEMU guest with Hyper-V enlightenments shows Microsoft's signature first, KVM's second.
        return VIRT_KIND.known("kvm" if signs.signature == "kvm" else "qemu", lines=lines)
    if signs.vm:
        return VIRT_KIND.known(signs.vm, lines=lines)
    return _kind_without_systemd(signs, lines)


def _kind_without_systemd(signs: Signs, lines: tuple[int, ...]) -> Reading[str]:
    """The kind without systemd's answer: clouds by firmware first, as in systemd, then the signature, then other
    firmware."""
    if signs.firmware in ("amazon", "google"):
        return VIRT_KIND.known(signs.firmware, lines=signs.names.lines if signs.names else ())
    if signs.signature:
        return VIRT_KIND.known(signs.signature, lines=lines)
    if signs.firmware and signs.names:
        return VIRT_KIND.known(signs.firmware, lines=signs.names.lines)
    flag = signs.answers.get(FLAG)
    if flag == "yes":
        return VIRT_KIND.known("vm-other", lines=signs.where(FLAG))
    if flag == "no" and signs.names:
        return VIRT_KIND.known("none", lines=(*lines, *signs.names.lines))
    return VIRT_KIND.unsupported("no systemd-detect-virt, and neither processor nor firmware tell")


def _kvm(signs: Signs) -> Reading[bool]:
    lines = signs.where(DETECTED, VENDOR, CLOCKS)
    if signs.signature == "kvm":
        return KVM_VISIBLE.known(True, lines=lines)
    if signs.vm == "kvm":
        if signs.answers.get(FLAG) == "no":
            return KVM_VISIBLE.not_run("systemd says kvm, the processor shows no hypervisor")
        return KVM_VISIBLE.known(True, lines=lines)
    if signs.answers.get("arch", "x86_64") not in ("x86_64", "i686"):
        return KVM_VISIBLE.unsupported("no CPUID on this architecture; the driver reads SMBIOS")
    if signs.vm == "microsoft" and signs.firmware == "qemu":
        return KVM_VISIBLE.not_run("Hyper-V enlightenments hide which signatures follow")
    if signs.vm == "qemu" and "arch" not in signs.answers:
        missing = ("the architecture: on ARM, `qemu` says nothing of KVM",)
        return KVM_VISIBLE.known(False, lines=lines, missing=missing)
    if signs.vm in _NOT_KVM or (not signs.vm and _other_signature(signs)):
        return KVM_VISIBLE.known(False, lines=lines)
    return KVM_VISIBLE.not_run("nothing here shows KVM's signature or its absence")


def _other_signature(signs: Signs) -> bool:
    """Whether a hypervisor other than KVM signs in CPUID. lscpu reads CPUID: an empty answer means that it knows no
    such signature."""
    return signs.answers.get(VENDOR) == "" or signs.signature in ("xen", "vmware")


probe = Probe(
    __name__,
    title="Kind of virtual machine",
    commands=(Command(_SH),),
    supplies=(VIRT_KIND, KVM_VISIBLE),
    parse=parse,
    signature=Signature(
        typed=r"systemd-detect-virt(?!.*-\w*c)|hostnamectl\b|virt-what\b",
        starts=(r"^(?:systemd-detect-virt|cpu hypervisor flag): ", r"^\s*Virtualization: [a-z]+$"),
        belongs=r"^[a-z][a-z_ -]{2,40}: |^\s*[A-Z][A-Za-z ]+: |^[a-z-]{2,20}$",
        any_machine=True,
    ),
)
