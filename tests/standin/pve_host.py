"""A Proxmox host that is a folder: its tools behave as qemu-server 9.2.6 does, its state are files.

The tools stand in tests/standin/pve. Scripts reach them through PEERPATH_ROOT, the prefix they take for
rehearsals, and refuse the folder without its file `peerpath-rehearsal`.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).parent / "pve"
# What a script may tell a person to type; other indented lines show what changes.
TYPED = frozenset({"sh", "qm", "cp", "mv", "rm", "systemctl", "docker", "proxmox-boot-tool"} | {"update-initramfs"})
ADDRESSES = tuple(f"0000:{bus}:00.0" for bus in ("01", "21", "41", "61", "81", "a1", "c1", "e1"))
KPRO6 = """\
agent: 1
balloon: 0
boot: order=scsi0
cores: 64
hostpci0: mapping=pro6000
hostpci1: mapping=pro6000
hostpci2: mapping=pro6000
hostpci3: mapping=pro6000
hostpci4: mapping=pro6000
hostpci5: mapping=pro6000
hostpci6: mapping=pro6000
hostpci7: mapping=pro6000
memory: 442368
meta: creation-qemu=10.1.2,ctime=1762900000
name: llm-one
net0: virtio=BC:24:11:00:01:28,bridge=vmbr0
onboot: 1
ostype: l26
scsi0: local-zfs:vm-128-disk-0,iothread=1,size=2T
scsihw: virtio-scsi-single
smbios1: uuid=5ac0ffee-0128-4000-8000-000000000128
sockets: 1
vmgenid: 5ac0ffee-0128-4000-8000-000000000129
"""
SYSTEMD_BOOT = """\
BootCurrent: 0003
Boot0001* UEFI: Built-in EFI Shell
Boot0003* Linux Boot Manager\tHD(2,GPT)/File(\\EFI\\SYSTEMD\\SYSTEMD-BOOTX64.EFI)
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """said: standard output and error together, in order."""

    code: int
    said: str

    @property
    def to_type(self) -> list[str]:
        """The commands that the script tells a person to type."""
        lines = (line[2:] for line in self.said.splitlines() if line.startswith("  "))
        return [line for line in lines if line.partition(" ")[0] in TYPED]


class PveHost:
    def __init__(self, folder: Path, config: str = KPRO6, vmid: int = 128) -> None:
        self.root, self.vmid = folder, vmid
        (folder / "bin").mkdir(parents=True)
        for tool in TOOLS.iterdir():
            (folder / "bin" / tool.name).symlink_to(tool)
        (folder / "peerpath-rehearsal").touch()
        self.write(f"etc/pve/qemu-server/{vmid}.conf", config)
        self.write(f"state/{vmid}.status", "running\n")
        self.write("state/calls", "0\n")
        self.write("state/node", "kpro6\n")
        self.write("state/uid", "0\n")
        self.write("proc/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n")
        self.write("proc/meminfo", f"MemTotal:       {768 * 1048576} kB\n")
        self.write("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n")
        self._devices()
        self.boots_with_systemd()

    def _devices(self) -> None:
        groups = (10, 28, 42, 61, 72, 90, 101, 117)
        lines = [
            f"\tmap id=10de:2bb5,iommugroup={group},node=kpro6,path={address},subsystem-id=10de:204e\n"
            for group, address in zip(groups, ADDRESSES, strict=True)
        ]
        self.write("etc/pve/mapping/pci.cfg", "pro6000\n" + "".join(lines))
        for address in ADDRESSES:
            self.device(address)

    def device(self, address: str, vendor: str = "0x10de", kind: str = "0x030200") -> None:
        self.write(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        self.write(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")

    def boots_with_systemd(self) -> None:
        (self.root / "sys/firmware/efi").mkdir(parents=True, exist_ok=True)
        self.write("etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n")
        self.write("etc/default/grub", 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
        self.write("state/efi", SYSTEMD_BOOT)
        self.write("state/esps", "ABCD-0001 is configured with: uefi (versions: 6.17.2-1-pve)\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    @property
    def config(self) -> str:
        return self.read(f"etc/pve/qemu-server/{self.vmid}.conf")

    @config.setter
    def config(self, text: str) -> None:
        self.write(f"etc/pve/qemu-server/{self.vmid}.conf", text)

    @property
    def values(self) -> dict[str, str]:
        """The current section's keys."""
        current = self.config.split("\n[")[0]
        return dict(line.split(": ", 1) for line in current.splitlines() if ": " in line)

    @property
    def status(self) -> str:
        return self.read(f"state/{self.vmid}.status").strip()

    @property
    def calls(self) -> int:
        return int(self.read("state/calls"))

    def run(self, text: str, *words: str, shell: str = "dash", fail: str = "", typed: str = "") -> Ran:
        """Runs a script as a person would: from a file. fail: as tests/standin/pve/_call says.

        typed: what a person at a terminal answers; without, there is no terminal.
        """
        script = self.root / "script.sh"
        script.write_text(text)
        self.write("state/calls", "0\n")
        return self._ran([*shell.split(), str(script), *words], fail, typed)

    def types(self, lines: list[str]) -> None:
        """What a person does who types each of these lines."""
        tools = f"PATH={shlex.quote(str(self.root / 'bin'))}:$PATH; "
        for line in lines:
            self._ran(["sh", "-c", tools + line], "")

    def start(self) -> None:
        """The VM runs as it is configured now, with the process that belongs to it."""
        self.write(f"state/{self.vmid}.status", "stopped\n")
        assert self._ran([str(self.root / "bin/qm"), "start", str(self.vmid)], "").code == 0

    def _ran(self, argv: list[str], fail: str, typed: str = "") -> Ran:
        ours, theirs = pty.openpty() if typed else (-1, subprocess.DEVNULL)
        if typed:
            os.write(ours, typed.encode())
        environment = {"PATH": os.environ["PATH"], "PEERPATH_ROOT": str(self.root)}
        done = subprocess.run(
            argv,
            env=environment | ({"STANDIN_FAIL": fail} if fail else {}),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            start_new_session=True,  # the way "kill" ends the process group
        )
        for end in (ours, theirs) if typed else ():
            os.close(end)
        return Ran(done.returncode, done.stdout)
