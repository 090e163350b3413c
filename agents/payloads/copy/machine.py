"""The machine it runs on: whether it can be measured, and what the figures depend on."""

import hashlib
import subprocess
import sys
from pathlib import Path

from lines import Refusal, say

BUSY_MIB = 2048  # memory in use without a visible process: another container's


def gpu_nodes():
    return [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")]


def smi(query):
    """The cells of nvidia-smi's answer; nothing where it cannot be asked."""
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines]


def refuse_when_busy():
    rows = smi("--query-compute-apps=pid,gpu_uuid")
    holders = [f"process {row[0]}" for row in rows if row[0].isdigit()]
    for gpu, mib in (row for row in smi("--query-gpu=index,memory.used") if len(row) == 2):
        if mib.isdigit() and int(mib) > BUSY_MIB:
            holders.append(f"{mib} MiB in use on GPU {gpu}")
    if holders:
        fix = "stop what uses the GPUs, or give --force and accept figures beside other work"
        raise Refusal("the GPUs are busy: " + ", ".join(holders[:8]), fix)


def load_torch():
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a library it needs is missing
        fix = "run this with the Python of the inference engine's environment, which has torch"
        raise Refusal(f"torch cannot be loaded by {sys.executable}: {error}", fix) from None
    return torch


def device_of(torch, chosen):
    if chosen.device == "cpu" or (not torch.cuda.is_available() and not gpu_nodes()):
        return "cpu"
    if torch.version.cuda is None:
        fix = "use a torch built for CUDA, or --device cpu"
        raise Refusal("this torch was built without CUDA", fix)
    try:
        torch.cuda.init()
        torch.cuda.synchronize()
    except Exception as error:  # torch raises what the driver says in many types
        words = " ".join(str(error).split("\n")[0].split())
        fix = "compare nvidia-smi's driver with torch.version.cuda"
        raise Refusal(f"CUDA does not start: {words}", fix) from None
    return "cuda"


def header(torch, device, argv):
    program = Path(sys.argv[0])  # one file as it is shipped, a folder where it is written
    digest = hashlib.sha256(program.read_bytes()).hexdigest() if program.is_file() else ""
    names, driver = [], ""
    if device == "cuda":
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        driver = next((row[0] for row in smi("--query-gpu=driver_version") if row), "")
    environment = {
        "device": device,
        "driver": driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": ", ".join(names),
        "python": sys.version.split()[0],
        "argv": " ".join(argv),
        "payload_sha256": digest,
    }
    say(schema="peerpath.copy/1", environment=environment)
