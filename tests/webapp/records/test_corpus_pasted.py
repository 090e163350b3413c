"""Real outputs of other people's machines, pasted through the browser's form as a person would:
all files of a case in one text, one after the other, each below a prompt where its name tells the
command. Expected values are read from the case itself where they are more than a count."""

from __future__ import annotations

import html
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.test import Client

from tests.corpus import CORPUS, needs_corpus
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records.sessions import session_open

pytestmark = [needs_corpus, pytest.mark.django_db]

# A file's name begins with one of these; the first that fits names the command.
COMMANDS = {
    "topo-p2p-w": "nvidia-smi topo -p2p w",
    "topo-p2p": "nvidia-smi topo -p2p r",
    "topo-m": "nvidia-smi topo -m",
    "query-gpu": "nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv",
    "nvidia-smi-q": "nvidia-smi -q",
    "lscpu": "lscpu",
    "lspci-tv": "lspci -tvnn",
    "lspci-nnk": "lspci -nnk",
    "lspci-nn": "lspci -nn",
    "lspci-vvv": "lspci -vvv",
    "lspci": "lspci",
    "qm-config": "qm config 100",
    "qm-list": "qm list",
    "qm-showcmd": "qm showcmd 100",
    "dmesg": "dmesg",
    "pveversion": "pveversion -v",
    "pci.cfg": "cat /etc/pve/mapping/pci.cfg",
    "find-iommu": "find /sys/kernel/iommu_groups -type l",
    "nccl-tests": "./build/all_reduce_perf -b 1M -e 8G -f 2 -g 8",
    "p2pBandwidth": "./p2pBandwidthLatencyTest",
}


@dataclass(frozen=True)
class Case:
    """readers: at least these understood something. Then texts on pages; {key} is that of [expect]."""

    number: str
    readers: set[str]
    diagnosis: tuple[str, ...] = ()
    guest: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    never: tuple[str, ...] = field(default=())


MATRIX, READ, WRITE = "guest.topo_matrix", "guest.topo_p2p_read", "guest.topo_p2p_write"
CASES = (
    Case(
        "002",
        {"guest.cpu", "guest.gpus", MATRIX, READ},
        diagnosis=("OK so far, but write was seen on 0 of 56 ordered pairs",),
        guest=("{gpu_count} × {gpu_name}", "{driver}", "two GPUs {worst_gpu_link}"),
    ),
    Case(
        "007",
        {"guest.gpu_query", READ},
        diagnosis=("The NVSwitch fabric is Completed",),
        guest=("state Completed status Success health {fabric_health_good}",),
        never=("there is one GPU",),
    ),
    Case(
        "008",
        {"guest.gpus", "guest.pci_devices", "host.qemu_running", "host.vms"},
        diagnosis=("GPUs that should be there do not answer",),
        guest=("bus {gpu_count_lspci}", "nvidia-smi lists {gpu_count_nvidia_smi}"),
        host=("0000:3d:00.0", "ai-vm-1"),
    ),
    Case("011", {READ, WRITE}, diagnosis=("read and write OK on 56 of 56 ordered pairs", "a matrix of OK")),
    Case(
        "018",
        {"host.vms"},
        diagnosis=("VM 100’s configuration has no clique in its args",),
        host=("machine {machine_version}", "0000:08:00 pcie=1, 0000:01:00,"),
    ),
    Case(
        "022",
        {"host.pci_mappings", "host.iommu_groups"},
        host=("nvidia-gpu", "0000:07:00", "10de:27b0", "IOMMU group 16"),
    ),
    Case("033", {"host.kernel_log", "host.configured_cmdline"}, never=("guest.iommu",)),
    Case("036", {"host.kernel_log"}, host=("Host IOMMU on, Intel",)),
    Case(
        "038",
        {"host.vms"},
        diagnosis=("sets a clique on 2 devices; nothing shows that it runs",),
        host=("hostpci 0000:81:00.0 pcie=1, 0000:c1:00.0 pcie=1 args -set",),
    ),
    Case(
        "041",
        {"guest.driver_module", "guest.gpus", MATRIX, READ, WRITE},
        diagnosis=("read and write OK on 12 of 12 ordered pairs",),
        guest=("{gpu_count} × {gpu_name}", "{driver}", "PHB on 12 of 12 pairs"),
    ),
    Case(
        "046",
        {"bench.nccl_tests", MATRIX},
        diagnosis=("every pair is joined by NVLink",),
        guest=("NV12 on 56 of 56 pairs",),
    ),
    Case("055", {"guest.pci_tree"}, guest=("Emulated board i440FX",), never=("there is one GPU",)),
    Case(
        "057",
        {"guest.pci_devices"},
        diagnosis=("there is one GPU",),
        guest=("Emulated board {machine_type}", "bus {gpu_count}"),
    ),
    Case("063", {"host.pve_version", "host.vms"}, host=("{old[pve]}", "kali-attack")),
    Case("069", {"host.vms", "guest.pci_devices"}, host=("x-nv-gpudirect-clique",), never=("there is one GPU",)),
    Case("071", {"guest.dmi"}, guest=("QEMU Standard PC (i440FX",)),
    Case(
        "082",
        {"guest.pci_devices", "host.iommu_groups"},
        guest=("bus {gpu_count}",),
        host=("group 40", "0000:21:00.0, 0000:22:00.0"),
    ),
    Case("085", {"bench.p2p_bandwidth_latency", "guest.nccl_log"}, never=("✓ pass",)),
)


def pasted(folder: Path) -> str:
    text = ""
    for file in sorted(folder.iterdir()):
        if file.name != "case.toml":
            known = (cmd for start, cmd in COMMANDS.items() if file.name.startswith(start))
            prompt = next((f"root@box:~# {command}\n" for command in known), "")
            text += prompt + file.read_text(errors="replace").rstrip("\n") + "\n"
    return text


def words(page: str) -> str:
    """What a person reads: no tags, one blank between words."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.number)
def test_a_paste_of_a_real_machine_is_understood(client: Client, alice: User, case: Case) -> None:
    (folder,) = CORPUS.glob(f"{case.number}-*")
    expected = tomllib.loads((folder / "case.toml").read_text())["expect"]
    session = session_open(owner=alice, title=case.number)
    client.force_login(alice)
    answer = client.post(f"/sessions/{session.pk}/paste/diagnosis", {"text": pasted(folder)})
    assert answer.status_code == 200
    readers = set(re.findall(r'class="dim mono">([\w.]+)<', html_of(answer)))
    assert readers >= case.readers
    shown = {}
    for step in ("diagnosis", "guest", "host", "topology", "decide"):
        page = client.get(f"/sessions/{session.pk}/{step}")
        assert page.status_code == 200
        shown[step] = words(html_of(page))
    for step, texts in (("diagnosis", case.diagnosis), ("guest", case.guest), ("host", case.host)):
        for text in texts:
            assert text.format(**expected) in shown[step]
    assert not [text for text in case.never if text in shown["diagnosis"]]
    assert bytes(session.evidence.get().body).decode() == pasted(folder)
