"""Outputs in their tools' formats with secrets planted in them, all made up; and outputs without any."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Planted:
    """secrets: kind -> every secret in the text. stays: what must be left in it."""

    name: str
    text: str
    secrets: dict[str, tuple[str, ...]]
    stays: tuple[str, ...] = ()


PLANTED = (
    Planted(
        "prompts",
        "mirela@gx-rig7:~$ nvidia-smi -L\n"
        "GPU 0: NVIDIA L40S (UUID: GPU-5f2b9c1e-8d3a-4e7f-9b0c-1a2b3c4d5e6f)\n"
        "(vllm) mirela@gx-rig7:/srv/models$ ls\n"
        "[root@rack3n12 ~]# uname -a\n"
        "Linux rack3n12 5.14.0-503.el9.x86_64 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n"
        "> tobias@gx-rig7 ~ % echo done\n",
        {
            "user_name": ("mirela", "tobias"),
            "host_name": ("gx-rig7", "rack3n12"),
            "uuid": ("5f2b9c1e-8d3a-4e7f-9b0c-1a2b3c4d5e6f",),
        },
        ("GPU-", "root@", "5.14.0-503.el9.x86_64"),
    ),
    Planted(
        "qm config",
        "agent: 1\nargs: -vnc 0.0.0.0:77,password=on\ncipassword: wint3r!moss\nciuser: mirela\n"
        "hostpci0: 0000:c1:00,pcie=1\nhostpci1: mapping=pool-b\nmachine: q35\nname: inference-04\n"
        "net0: virtio=BC:24:11:3E:90:AF,bridge=vmbr0,firewall=1\n"
        "smbios1: uuid=7d1c2f3e-55aa-4b0e-8f61-0c9d8e7f6a5b,serial=PX4410-9\n"
        "ipconfig0: ip=198.51.100.23/24,gw=198.51.100.1\n"
        "sshkeys: ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIKx9c0Vq2h7r3%20mirela%40gx-rig7%0A\n"
        "vmgenid: 0b7a1f0e-3d9c-4a55-9d1b-2f3e4d5c6b7a\n",
        {
            "credential": ("wint3r!moss", "AAAAC3NzaC1lZDI1NTE5AAAAIKx9c0Vq2h7r3"),
            "user_name": ("mirela",),
            "host_name": ("inference-04",),
            "mac_address": ("BC:24:11:3E:90:AF",),
            "uuid": ("7d1c2f3e-55aa-4b0e-8f61-0c9d8e7f6a5b", "0b7a1f0e-3d9c-4a55-9d1b-2f3e4d5c6b7a"),
            "serial_number": ("PX4410-9",),
            "ip_address": ("198.51.100.23", "198.51.100.1"),
        },
        ("0.0.0.0:77,password=on", "0000:c1:00,pcie=1", "machine: q35", "/24"),
    ),
    Planted(
        "NCCL log",
        "inference-04:4121:4121 [0] NCCL INFO Bootstrap : Using ens18:198.51.100.23<0>\n"
        "inference-04:4121:4121 [0] NCCL INFO NCCL version 2.27.7+cuda12.9\n"
        "inference-04:4121:4188 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB "
        "ens18:fe80::be24:11ff:fe3e:90af%ens18<0>\n"
        "inference-04:4121:4188 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct\n",
        {"host_name": ("inference-04",), "ip_address": ("198.51.100.23", "fe80::be24:11ff:fe3e:90af")},
        (":4121:4188 [0] NCCL INFO", "2.27.7+cuda12.9", "via SHM/direct/direct", "<0>"),
    ),
    Planted(
        "nvidia-smi -q",
        "==============NVSMI LOG==============\n\n"
        "Timestamp                                 : Tue Jun  3 14:02:11 2025\n"
        "Driver Version                            : 590.48.01\n"
        "GPU 00000000:C1:00.0\n"
        "    Serial Number                         : 1324823017744\n"
        "    GPU UUID                              : GPU-0c4e6f1a-9b8d-4c3e-a2f1-e0d9c8b7a695\n"
        "    VBIOS Version                         : 98.02.6A.00.03\n"
        "    GPU Part Number                       : 900-2G153-0000-000\n"
        "        Chassis Serial Number             : N/A\n",
        {"serial_number": ("1324823017744",), "uuid": ("0c4e6f1a-9b8d-4c3e-a2f1-e0d9c8b7a695",)},
        ("14:02:11", "590.48.01", "00000000:C1:00.0", "98.02.6A.00.03", "900-2G153-0000-000", ": N/A"),
    ),
    Planted(
        "query CSV with serials",
        "index, serial, uuid, pci.bus_id\n"
        "0, 1324823017744, GPU-0c4e6f1a-9b8d-4c3e-a2f1-e0d9c8b7a695, 00000000:C1:00.0\n"
        "1, [N/A], GPU-1d5f7a2b-0c9e-4d4f-b3a2-f1e0d9c8b7a6, 00000000:E1:00.0\n",
        {
            "serial_number": ("1324823017744",),
            "uuid": ("0c4e6f1a-9b8d-4c3e-a2f1-e0d9c8b7a695", "1d5f7a2b-0c9e-4d4f-b3a2-f1e0d9c8b7a6"),
        },
        ("index, serial, uuid", "[N/A]", "00000000:E1:00.0"),
    ),
    Planted(
        "journal and dmesg",
        "Jun 03 14:02:11 rack3n12 kernel: NVRM: GPU 0000:C1:00.0: GPU serial number is 1324823017744.\n"
        "Jun 03 14:02:11 rack3n12 sshd[991]: Accepted publickey for tobias from 203.0.113.9 port 50122 ssh2\n"
        "2025-06-03T14:02:12.004+0200 rack3n12 sudo[1002]:   tobias : TTY=pts/0 ; COMMAND=/usr/bin/dmesg\n"
        "Mär 03 14:02:11 rack3n12 kernel: pci 0000:c1:00.0: [10de:2bb5] type 00 class 0x030200\n"
        "[    2.412345] mlx5_core 0000:61:00.0 enx0c42a1b6d7e8: renamed from eth0\n",
        {
            "host_name": ("rack3n12",),
            "user_name": ("tobias",),
            "ip_address": ("203.0.113.9",),
            "serial_number": ("1324823017744",),
            "mac_address": ("0c42a1b6d7e8",),
        },
        ("14:02:11", "0000:c1:00.0", "[10de:2bb5]", "2.412345"),
    ),
    Planted(
        "Proxmox",
        "map id=10de:2bb5,iommugroup=10,node=kestrel,path=0000:01:00,subsystem-id=10de:204e\n"
        "/etc/pve/nodes/kestrel/qemu-server/128.conf\n"
        "      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID\n"
        "       128 inference-04         running    442368           512.00 30211\n"
        "       131 ledger-db            stopped    8192              64.00 0\n"
        "/usr/bin/kvm -id 128 -name inference-04,debug-threads=on -device vfio-pci,host=0000:01:00.0\n"
        "Authorization: PVEAPIToken=mirela@pam!ci=3f1f7c2a-0b1e-4f5d-8a77-6c5d4e3f2a1b\n",
        {
            "host_name": ("kestrel", "inference-04", "ledger-db"),
            "user_name": ("mirela",),
            "credential": ("3f1f7c2a-0b1e-4f5d-8a77-6c5d4e3f2a1b",),
        },
        ("10de:2bb5", "path=0000:01:00", "-id 128", "debug-threads=on", "442368"),
    ),
    Planted(
        "docker inspect",
        '        "Hostname": "a3f09c1be277",\n'
        '            "HF_TOKEN=hf_QkZlXwVbNmAsDfGhJkLpOiUyTr",\n'
        '            "OPENAI_API_KEY=sk-proj-Zk3v9Qw8Xy7Lm2Nb4Vc6",\n'
        '            "AWS_ACCESS_KEY_ID=AKIAQ3EXAMPLE7ZK2PLM",\n'
        '            "NVIDIA_VISIBLE_DEVICES=all"\n'
        '            "MacAddress": "02:42:ac:11:00:02",\n'
        '            "IPAddress": "172.17.0.2",\n',
        {
            "host_name": ("a3f09c1be277",),
            "credential": ("hf_QkZlXwVbNmAsDfGhJkLpOiUyTr", "sk-proj-Zk3v9Qw8Xy7Lm2Nb4Vc6", "AKIAQ3EXAMPLE7ZK2PLM"),
            "mac_address": ("02:42:ac:11:00:02",),
            "ip_address": ("172.17.0.2",),
        },
        ("NVIDIA_VISIBLE_DEVICES=all",),
    ),
    Planted(
        "engine's start-up",
        "INFO 06-03 14:02:11 api_server.py:1768] args: Namespace(host='198.51.100.23', port=8000, "
        "api_key='meadow-lark-55', model='/home/tobias/models/glm', tokenizer=None, "
        "max_num_batched_tokens=8192, hf_token=None)\n"
        "curl -H 'Authorization: Bearer q7Rk2mWz9LpX4vTb' http://llm.birch.internal:30000/v1/models\n"
        "python -m sglang.launch_server --api-key meadow-lark-55 --dist-init-addr birchnode1:5000\n"
        "contact: Mirela.Stan@birchworks.de\n"
        "postgresql://peerdb:gr4nite@203.0.113.40/x\n",
        {
            "ip_address": ("198.51.100.23", "203.0.113.40"),
            "credential": ("meadow-lark-55", "q7Rk2mWz9LpX4vTb", "gr4nite"),
            "user_name": ("tobias", "peerdb"),
            "host_name": ("llm.birch.internal", "birchnode1"),
            "email_address": ("Mirela.Stan@birchworks.de",),
        },
        ("max_num_batched_tokens=8192", "hf_token=None", ":30000/v1/models", "14:02:11"),
    ),
    Planted(
        "a private key",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAZQm9yZGVy\n"
        "-----END OPENSSH PRIVATE KEY-----\nafter\n",
        {"credential": ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU",)},
        ("after", "-----END OPENSSH PRIVATE KEY-----"),
    ),
    Planted(
        "lspci, ibstat, disks, DMI",
        "\tCapabilities: [160 v1] Device Serial Number b8-ce-f6-03-00-0a-bc-de\n"
        "\tNode GUID: 0xb8cef603000abcde\n"
        "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8HCLS-00A07_S64HNE0T512034\n"
        "System Information\n\tManufacturer: ASUSTeK COMPUTER INC.\n\tSerial Number: S7QK8812004\n"
        "\tUUID: 8c1f5e02-93d1-11ec-8b6e-a0369fd71c44\n\tAsset Tag: To Be Filled By O.E.M.\n",
        {
            "mac_address": ("b8-ce-f6-03-00-0a-bc-de", "b8cef603000abcde"),
            "serial_number": ("S64HNE0T512034", "S7QK8812004"),
            "uuid": ("8c1f5e02-93d1-11ec-8b6e-a0369fd71c44",),
        },
        ("ASUSTeK", "To Be Filled", "MZQL23T8HCLS-00A07"),
    ),
)

# Nothing in these is anybody's.
HARMLESS = (
    "0000:01:00.0 3D controller [0302]: NVIDIA Corporation GB202GL [10de:2bb5] (rev a1)",
    "00000000:C1:00.0  00000000:0a:00.0  0000:00:1f.3  10de:2bb5  1022:14aa",
    "590.48.01  6.14.8-2-pve  2.27.7+cuda12.9  12.8.1  pve-qemu-kvm: 9.2.0-5  1.28-pve1",
    "[pip3] nvidia-cublas-cu12==12.8.3.14\n[pip3] nvidia-cudnn-cu12==9.8.0.87",
    "[conda] nvidia-nvtx 12.4.5.8 pypi_0",
    "cuDNN version: 9.8.0.87\nlibcudnn.so.9.8.0\nFirmware Version: 28.39.10.02",
    "14:02:11  2025-06-03T14:02:11Z  Tue Jun  3 14:02:11 2025  [    2.412345]",
    " \tGPU0\tGPU1\tGPU2\n GPU0\tX\tNS\tNS\n GPU1\tNS\tX\tNS\nCPU Affinity 0-31,64-95",
    "     0  32.60  14.20\n     1  14.21 1033.00",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "node 0 cpus: 0 1 2 3 4 5 6 7\nnode distances:\n  0:  10  32",
    "-device vfio-pci,host=0000:01:00.0,id=hostpci0.0,bus=ich9-pcie-port-1,addr=0x0.0,multifunction=on",
    "127.0.0.1  0.0.0.0  255.255.255.0  ::1  [::]:30000  localhost",
    "c10::Error  torch::jit  std::vector  at::native  c10::add",
    "00:01:02:03:04:05:06:07:08:09:0a  ff:ff:ff:ff:ff:ff  00:00:00:00:00:00",
    "user@1000.service  getty@tty1.service  nvidia-persistenced@gpu.service",
    "Token usage: 0.01, max_total_tokens=412344, bos_token='<|begin|>', tokenizer='org/model-7B'",
    "Output token throughput (tok/s): 250.11\nMean Inter-token Latency-----------------\n",
    "UUID: 03000200-0400-0500-0006-000700080009\nUUID: 00000000-0000-0000-0000-000000000000",
    "Serial Number : N/A   Asset Tag: Not Specified   Serial Number: 0",
    "BOOT_IMAGE=/boot/vmlinuz-6.14.8-2-pve root=/dev/mapper/pve-root ro quiet iommu=pt pci=realloc",
    "https://docs.nvidia.com/deploy/xid-errors  https://github.com/NVIDIA/nccl",
    "git@github.com:NVIDIA/nccl",
    "root@ubuntu:~# whoami\nroot\n/home/ubuntu/venv/bin/python",
    "NVRM: Xid (PCI:0000:c1:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
    "LnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <64us",
    "[sudo] a password is required\nsudo: no password was provided",
)
