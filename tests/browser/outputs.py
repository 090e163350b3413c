"""Outputs in their tools' formats, as a person pastes them: two GPUs in a KVM guest without P2P."""

GUEST = """\
op@llm:~$ systemd-detect-virt
kvm
op@llm:~$ nvidia-smi --query-gpu=index,name,pci.bus_id,driver_version,memory.total,power.draw,power.limit,utilization.gpu,mig.mode.current --format=csv
index, name, pci.bus_id, driver_version, memory.total [MiB], power.draw [W], power.limit [W], utilization.gpu [%], mig.mode.current
0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 00000000:00:10.0, 590.48.01, 97887 MiB, 331.20 W, 600.00 W, 100 %, Disabled
1, NVIDIA RTX PRO 6000 Blackwell Server Edition, 00000000:00:11.0, 590.48.01, 97887 MiB, 329.87 W, 600.00 W, 100 %, Disabled
op@llm:~$ nvidia-smi topo -p2p r
 \tGPU0\tGPU1\t
 GPU0\tX\tNS\t
 GPU1\tNS\tX\t

Legend:

  X    = Self
  OK   = Status Ok
  NS   = Not supported
"""

COPIES = """\
GPU 0 -> GPU 1, torch copy with synchronise
size    GB/s    us
12 KB   0.90    13.7
48 KB   3.47    14.2
4 MB    30.60   137.1
16 MB   41.41   405.1
"""

COPIES_AFTER = """\
GPU 0 -> GPU 1, torch copy with synchronise
size    GB/s    us
12 KB   0.92    13.4
48 KB   3.55    13.8
4 MB    31.10   134.9
16 MB   41.60   403.3
"""

HOST = """\
root@pve:~# qm config 128
agent: 1
boot: order=scsi0
cores: 32
cpu: host
hostpci0: mapping=pro6000
hostpci1: mapping=pro6000
memory: 442368
name: llm
net0: virtio=BC:24:11:00:00:01,bridge=vmbr0
scsi0: local-zfs:vm-128-disk-0,size=512G
scsihw: virtio-scsi-single
smbios1: uuid=5a2b7c1e-0000-4000-8000-000000000128
sockets: 1
root@pve:~# cat /proc/cmdline
initrd=\\EFI\\proxmox\\6.14.8-2-pve\\initrd.img-6.14.8-2-pve root=ZFS=rpool/ROOT/pve-1 boot=zfs
"""
