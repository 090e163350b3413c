"""The machine it runs on: whether it can be measured, and what the figures depend on."""

import hashlib
import subprocess
import sys
import time
import warnings
from pathlib import Path

from lines import Refusal, say

BUSY_MIB = 2048  # memory in use without a visible process: another container's
LEFT_MIB = 64  # more than before, once everything has ended: something was left behind


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
    for gpu, mib in memory_used().items():
        if mib > BUSY_MIB:
            holders.append(f"{mib} MiB in use on GPU {gpu}")
    if holders:
        fix = "stop what uses the GPUs, or give --force and accept figures beside other work"
        raise Refusal("the GPUs are busy: " + ", ".join(holders[:8]), fix)


def load_torch():
    # A torch without NumPy says so at its first tensor; nothing here uses NumPy.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
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


def header(torch, device, argv, schema):
    """The first line of a program that measures with torch."""
    names = []
    if device == "cuda":
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    environment = {
        "device": device,
        "driver": driver_version() if names else "",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": ", ".join(names),
        **program(argv),
    }
    say(schema=schema, environment=environment)


def driver_version():
    return next((row[0] for row in smi("--query-gpu=driver_version") if row), "")


def program(argv):
    """What ran: the interpreter, the arguments, and the hash of the one file that was shipped."""
    path = Path(sys.argv[0])
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    version = sys.version.split()[0]
    return {"python": version, "argv": " ".join(argv), "payload_sha256": digest}


def memory_used():
    """MiB in use on each GPU, by nvidia-smi's index."""
    rows = (row for row in smi("--query-gpu=index,memory.used") if len(row) == 2)
    return {gpu: int(mib) for gpu, mib in rows if mib.isdigit()}


def say_what_is_left(before):
    """Whether the GPUs hold more than before; drivers take a moment to free a killed process's."""
    for _ in range(5):
        kept = {g: mib - before[g] for g, mib in memory_used().items() if g in before}
        if max(kept.values(), default=0) <= LEFT_MIB:
            return
        time.sleep(1)
    gpu = max(kept, key=kept.get)
    say(note=f"GPU {gpu} still holds {kept[gpu]} MiB more than before")
