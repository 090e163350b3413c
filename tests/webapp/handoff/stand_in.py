"""Stand-ins for Proxmox and libvirt hosts: a handed script runs on this machine, in a mount namespace of its
own that has an /etc/pve, where there is one, and the host's tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# As `qm config` and pmxcfs keep them; addresses from the ranges for documentation.
VM = """\
agent: 1
bios: ovmf
boot: order=scsi0
cores: 64
cpu: x86-64-v2-AES
hostpci0: mapping=pro6000,pcie=0
hostpci1: mapping=pro6000b
machine: pc-i440fx-9.2
memory: 524288
name: llm-customer-one
net0: virtio=BC:24:11:AA:BB:CC,bridge=vmbr0
numa: 0
ostype: l26
scsi0: acme-store:vm-128-disk-0,size=800G
smbios1: uuid=6c0b4c6a-7a39-4d3a-9f0b-0d6b1a2c3d4e
ipconfig0: ip=192.0.2.17/24,gw=192.0.2.1
"""
MAPPING = """\
pro6000
\tmap id=10de:2bb1,iommugroup=41,node=pve-acme,path=0000:41:00.0,subsystem-id=10de:204b

pro6000b
\tmap id=10de:2bb1,iommugroup=42,node=pve-acme,path=0000:81:00.0,subsystem-id=10de:204b
"""
_QM = """[ "$1" = list ] && printf '%10s %-20s %-10s %-10s\\n' VMID NAME STATUS 'MEM(MB)' &&
printf '%10s %-20s %-10s %-10s\\n' 128 llm-customer-one running 524288"""
_PVE = "echo 'proxmox-ve: {0}'; echo 'pve-manager: {1}'; echo 'pve-qemu-kvm: {2}'"
_DOMAIN = """<domain type='kvm'>
  <name>llm-customer-one</name>
  <uuid>6c0b4c6a-7a39-4d3a-9f0b-0d6b1a2c3d4e</uuid>
  <memory unit='KiB'>536870912</memory>
  <vcpu placement='static'>64</vcpu>
  <os><type arch='x86_64' machine='pc-q35-9.2'>hvm</type></os>
  <cpu mode='host-passthrough' check='none'/>
  <devices>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source><address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/></source>
    </hostdev>
  </devices>
</domain>"""
_VIRSH = f"""case "$*" in
  *--uuid*) echo 6c0b4c6a-7a39-4d3a-9f0b-0d6b1a2c3d4e ;;
  *"list --all"*) printf ' Id   Name               State\\n----\\n 1    llm-customer-one   running\\n' ;;
  *dumpxml*) cat <<'EOF'
{_DOMAIN}
EOF
  ;;
esac"""
# The tools of each kind of host, by name. Mappings came with Proxmox VE 8.
HOSTS = {
    "pve7": {
        "qm": _QM,
        "pveversion": _PVE.format(
            "7.4-1 (running kernel: 5.15.158-2-pve)", "7.4-19 (running version: 7.4-19/f98bf8d4)", "7.2.10-1"
        ),
    },
    "pve8": {
        "qm": _QM,
        "pveversion": _PVE.format(
            "8.4.0 (running kernel: 6.8.12-11-pve)", "8.4.1 (running version: 8.4.1/2a5fa54a8503f96d)", "9.2.0-6"
        ),
    },
    "pve9": {
        "qm": _QM,
        "pveversion": _PVE.format(
            "9.0.0 (running kernel: 6.14.8-2-pve)", "9.0.3 (running version: 9.0.3/025864202ebb6109)", "10.0.2-4"
        ),
        "proxmox-boot-tool": "echo 'System currently booted with uefi'",
    },
    "libvirt": {"virsh": _VIRSH},
}
_INSIDE = """
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc || exit 90
[ ! -d "$1/pve" ] || cp -r "$1/pve" /etc/pve
shift
exec "$@"
"""
INSIDE = ["unshare", "-m", "sh", "-c", _INSIDE, "sh"]


def on_the_stand_in(folder: Path, script: Path, *options: str, shell: str = "sh", host: str = "pve9") -> bytes:
    """What the script prints there. Skips where no mount namespace can be made."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("a stand-in host needs root and unshare")
    base = made(folder, host)
    done = subprocess.run(
        [*INSIDE, str(base), *shell.split(), str(script), *options],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PATH": f"{base}/bin:{os.environ['PATH']}"},
    )
    if done.returncode == 90:
        pytest.skip("no overlay can be mounted here")
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(folder: Path, host: str = "pve9") -> Path:
    """The folder that the stand-in is made of."""
    base = folder / host
    if base.exists():
        return base
    for name in ("upper", "work", "bin"):
        (base / name).mkdir(parents=True)
    if host != "libvirt":
        (base / "pve/qemu-server").mkdir(parents=True)
        (base / "pve/qemu-server/128.conf").write_text(VM)
    if host in {"pve8", "pve9"}:
        (base / "pve/mapping").mkdir()
        (base / "pve/mapping/pci.cfg").write_text(MAPPING)
    for name, body in HOSTS[host].items():
        tool = base / "bin" / name
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
    return base
