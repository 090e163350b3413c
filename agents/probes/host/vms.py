"""The VMs' configurations: Proxmox's files, or libvirt's domains.

/etc/pve/qemu-server/*.conf hold pending changes and snapshots, which `qm config` mixes or hides, so the probe reads
the files. Descriptions, passwords and keys stay on the host.
"""

from dataclasses import replace

from agents.facts import Reading
from agents.facts.vm import VMS, Vm
from agents.parsing import libvirt, qm_config
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no VM is configured"
_PROXMOX = rf"""[ -d /etc/pve/qemu-server ] || exit 127
for f in /etc/pve/qemu-server/*.conf; do
  [ -e "$f" ] || {{ echo '{_NONE}'; continue; }}
  echo "### $f"
  sed -E '/^(#|cipassword:|sshkeys:|description:)/d; s/((passw[a-z]*|data)=)[^, ]*/\1***/g' "$f"
done
if command -v qm >/dev/null; then echo '### qm list'; qm list || :; fi"""
_LIBVIRT = rf"""n=; virsh -r -c qemu:///system list --all || exit 1
for u in $(virsh -r -c qemu:///system list --all --uuid); do
  n=1; virsh -r -c qemu:///system dumpxml "$u" | sed 's/\(passw[a-z]*=\)[^ >]*/\1***/g'
done
[ "$n" ] || echo '{_NONE}'"""


def parse(output: Output) -> Readings:
    vms = qm_config.parse(output.stdout) + libvirt.parse(output.stdout)
    if not vms:
        return (_no_reading(output),)
    if output.truncated:
        vms = (*vms[:-1], replace(vms[-1], filtered=True))
    lines = {number for vm in vms for number in vm.key_lines.values()}
    missing = tuple(dict.fromkeys(_missing(output, vms)))
    return (VMS.known(vms, lines=tuple(sorted(lines)), missing=missing),)


def _missing(output: Output, vms: tuple[Vm, ...]) -> list[str]:
    missing = ["the end of the output"] if output.truncated else []
    for vm in vms:
        name = f"VM {vm.id}" if vm.id is not None else vm.name or "the VM"
        if not vm.config and not vm.hostpci and not vm.args:
            missing.append(f"the configuration of {name}")
        elif vm.filtered:
            missing.append(f"keys of {name}: this is a part of its configuration")
    return missing


def _no_reading(output: Output) -> Reading[tuple[Vm, ...]]:
    if output.tool_missing:
        return VMS.unsupported("neither Proxmox nor libvirt on this machine")
    if output.refused:
        return VMS.not_run("reading the configurations was refused; root may")
    if output.exit_code and output.stderr.strip() and not output.stdout.strip():
        return VMS.not_run(f"listing the VMs failed: {output.stderr.strip()[:200]}")
    if _NONE in output.stdout or (output.exit_code == 0 and not output.stdout.strip()):
        return VMS.absent(_NONE)
    return VMS.unreadable("no line of a VM's configuration in the output")


_KEYS = (
    r"agent|args|balloon|bios|boot|cores|cpu|efidisk0|hostpci\d+|hugepages|machine|memory|meta|name|"
    r"net\d|numa|onboot|ostype|scsi\d|scsihw|smbios1|sockets|vga|vmgenid|ide\d|affinity|tags|sata\d"
)

probe = Probe(
    __name__,
    title="Configured VMs",
    commands=(Command(_PROXMOX, root=True), Command(_LIBVIRT, needs=("virsh",), root=True)),
    supplies=(VMS,),
    parse=parse,
    signature=Signature(
        typed=r"qm\s+(?:config|pending|list|status)\b|qemu-server/\d+\.conf|virsh\s+(?:dumpxml|list)\b"
        r"|pvesh\s+get\s+\S+/qemu(?:/\d+/(?:config|pending))?(?:\s|$)",
        starts=(
            rf"^\s*(?:(?:cur|new|del) )?(?:{_KEYS}): \S",
            r"^\s*VMID\s+NAME\s+STATUS",
            r"^\s*<(?:domain|hostdev|qemu:commandline|qemu:override)\b",
            r'^\s*\{"[a-z].*"(?:hostpci\d+|scsihw|smbios1|vmgenid)" ?:',
            r"^#+ /etc/pve/qemu-server/\d+\.conf",
        ),
        belongs=(
            rf"^\s*$|^\s*#|^\s*<|^\[[^\]]+\]$|^\s*(?:(?:cur|new|del) )?(?:{_KEYS})\b|"
            r"^\s*(?:(?:cur|new|del) )?[a-z][a-z0-9_-]+: |^\s*(?:\d+|-)\s+\S+\s+(?:running|stopped|shut)|"
            r"^\s*Id\s+Name|^-{5,}|^\s*[│┌├└╞]"
            r'|^\s*(?:[\[\]{}]+,?|\[?\{".*\}\]?,?|"[^"]{1,60}" ?:.*)\s*$'
        ),
        with_command=True,
    ),
    timeout_s=30,
    slow=True,
    root_adds="the VMs' configurations, which only root and Proxmox may read",
    left_out="descriptions and comments, passwords, SSH keys and other secret values",
)
