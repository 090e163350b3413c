"""What a VM's extra QEMU arguments say about cliques and about hiding KVM.

Syntax: QEMU's `-set device.ID.PROPERTY=VALUE`, `-global DRIVER.PROPERTY=VALUE`, `-device DRIVER,…` and
`-cpu MODEL,…`; Proxmox splits the string like a shell and drops all of it when the quotes do not pair
(Proxmox qemu-server 9.2.6, Tools.pm split_args).
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

PROPERTY = "x-nv-gpudirect-clique"

_SET = re.compile(rf"device\.(.+)\.{PROPERTY}=(0x[0-9a-fA-F]+|\d+)$")
_GLOBAL = re.compile(rf"vfio-pci\.{PROPERTY}=(0x[0-9a-fA-F]+|\d+)$")
_ON_DEVICE = re.compile(rf"(?:^|,){PROPERTY}=(0x[0-9a-fA-F]+|\d+)(?:,|$)")
_ID = re.compile(r"(?:^|,)id=([^,]+)")
_HIDES_KVM = re.compile(r"(?:^|,)(?:kvm=off|-hypervisor|hypervisor=off)(?:,|$)")


def split(args: str) -> tuple[str, ...] | None:
    """The words of an `args:` line; None when its quotes do not pair."""
    try:
        return tuple(shlex.split(args))
    except ValueError:
        return None


def cliques(words: Sequence[str], devices: Sequence[str]) -> dict[str, int]:
    """Clique id by device id ("hostpci0"); `-global` reaches every one of `devices`."""
    by_device: dict[str, int] = {}
    for option, value in pairwise(words):
        if option == "-global" and (match := _GLOBAL.match(value)):
            by_device |= dict.fromkeys(devices or ("vfio-pci",), int(match[1], 0))
        elif option == "-set" and (match := _SET.match(value)):
            by_device[match[1]] = int(match[2], 0)
        elif option == "-device" and (match := _ON_DEVICE.search(value)):
            name = _ID.search(value)
            by_device[name[1] if name else value] = int(match[1], 0)
    return by_device


def hides_kvm(words: Sequence[str]) -> bool:
    """Whether a `-cpu` among the words takes the KVM signature or the hypervisor bit away."""
    return any(o == "-cpu" and _HIDES_KVM.search(value) for o, value in pairwise(words))


def cpu_hides_kvm(cpu: str | None) -> bool:
    """The same for the value of QEMU's `-cpu` alone."""
    return bool(cpu and _HIDES_KVM.search(cpu))


def describe(by_device: Mapping[str, int]) -> str:
    """ "hostpci0=0, hostpci1=0" for texts."""
    return ", ".join(f"{device}={clique}" for device, clique in sorted(by_device.items()))
