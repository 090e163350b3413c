"""The program's machine: whether it can be measured, and what the figures depend on."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path

from lines import FIRST_NOTES, HEADED, MARKS, Refusal, say

BUSY_MIB = 2048  # memory in use without a visible process: another container's
LEFT_MIB = 64  # more than before, once everything has ended: something was left behind
COMPARABLE = ("payload_sha256", "device", "gpus", "gpu_uuids", "driver", "cuda", "torch", "nccl", "settings")
UNMEASURED = ("--limit", "--telemetry-seconds")


def gpu_nodes():
    return [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")]


def smi(query):
    """The cells of nvidia-smi's answer; nothing where it does not run."""
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines]


def holders():
    """The users of the GPUs: processes, and memory of processes that are not visible here."""
    numbers = {row[1]: row[0] for row in smi("--query-gpu=index,uuid") if len(row) == 2}
    users, seen = [], set()
    for row in smi("--query-compute-apps=pid,gpu_uuid,used_memory,process_name"):
        if len(row) < 4 or not row[0].isdigit():
            continue
        gpu = numbers.get(row[1], "?")
        size = f"{row[2]} MiB on " if row[2].isdigit() else ""
        name = Path(", ".join(row[3:])).name
        users.append(f"process {row[0]} ({name}, {size}GPU {gpu})")
        seen.add(gpu)
    for gpu, mib in memory_used().items():
        if mib > BUSY_MIB and gpu not in seen:
            users.append(f"{mib} MiB in use on GPU {gpu}")
    return users


def refuse_when_busy(users=None, force=False):
    """Refuses when the GPUs are in use; with force every row says that it was measured beside other work."""
    users = holders() if users is None else users
    if not users:
        return
    who = ", ".join(users[:8])
    if not force:
        fix = "stop what uses the GPUs, or give --force and accept figures beside other work"
        raise Refusal(f"the GPUs are busy: {who}", fix)
    MARKS["beside_other_work"] = True
    FIRST_NOTES.append(f"measured beside other work, which the figures depend on: {who}")


def load_torch():
    # A torch without NumPy warns at its first tensor; nothing here uses NumPy.
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
    except Exception as error:  # torch raises the driver's errors as many types
        words = " ".join(str(error).split("\n")[0].split())
        fix = "compare nvidia-smi's driver with torch.version.cuda"
        raise Refusal(f"CUDA does not start: {words}", fix) from None
    return "cuda"


def header(torch, device, argv, schema, **more):
    """The first line of a program that measures with torch."""
    names, uuids = [], []
    if device == "cuda":
        every = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        names = [gpu.name for gpu in every]
        uuids = [f"GPU-{gpu.uuid}" for gpu in every if hasattr(gpu, "uuid")]
    environment = {
        "device": device,
        "driver": driver_version() if names else "",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "nccl": nccl_version(torch),
        "gpus": ", ".join(names),
        "gpu_uuids": ", ".join(uuids),
        **(card_settings() if names else {}),
        **program(argv),
        **more,
    }
    say_header(schema, environment, argv)


def say_header(schema, environment, argv):
    """environment: text by name."""
    environment = {**environment, **MARKS, **fingerprint(schema, environment, argv)}
    say(schema=schema, environment=environment)
    for note in FIRST_NOTES:
        say(note=note)
    HEADED[0] = 1


def nccl_version(torch):
    try:
        return ".".join(map(str, torch.cuda.nccl.version()))
    except (AttributeError, RuntimeError):  # a torch without NCCL
        return ""


def driver_version():
    return next((row[0] for row in smi("--query-gpu=driver_version") if row), "")


def card_settings():
    """The administrator's settings of the GPUs, each value once; nothing without nvidia-smi."""
    rows = [row for row in smi("--query-gpu=ecc.mode.current,power.limit") if len(row) == 2]
    columns = (("ecc", 0), ("power_limits_w", 1))
    return {name: ", ".join(dict.fromkeys(row[i] for row in rows)) for name, i in columns}


def program(argv):
    """The program and its surroundings: the interpreter, the arguments, the hash of the shipped file, the kernel, and
    the settings that CUDA and NCCL read."""
    path = Path(sys.argv[0])
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    version, settings = sys.version.split()[0], sorted(os.environ.items())
    return {
        "python": version,
        "argv": " ".join(argv),
        "payload_sha256": digest,
        "kernel": platform.release(),
        "settings": " ".join(f"{k}={v}" for k, v in settings if k.startswith(("NCCL_", "CUDA_"))),
    }


def fingerprint(schema, environment, argv):
    """One short hash over everything that must be equal before two runs can be compared.

    It leaves out the kernel and the interpreter: the change between two runs may change them.
    """
    values = {"schema": schema, "measuring": measuring(argv)}
    values.update({name: environment.get(name, "") for name in COMPARABLE})
    text = json.dumps(values, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"fingerprint": digest, "fingerprint_of": ", ".join(values)}


def measuring(argv):
    """The arguments that change the measurement."""
    settings, words = [], iter(argv)
    for word in words:
        if word in UNMEASURED:
            next(words, None)
        elif word != "--force" and not word.startswith(tuple(f"{name}=" for name in UNMEASURED)):
            settings.append(word)
    return " ".join(settings)


def memory_used():
    """MiB in use on each GPU, by nvidia-smi's index."""
    rows = (row for row in smi("--query-gpu=index,memory.used") if len(row) == 2)
    return {gpu: int(mib) for gpu, mib in rows if mib.isdigit()}


def say_what_is_left(before):
    """Notes when a GPU holds more memory than before. Drivers take a moment to free a killed process's memory."""
    if not before:
        return
    for _ in range(5):
        growth = {g: mib - before[g] for g, mib in memory_used().items() if g in before}
        if max(growth.values(), default=0) <= LEFT_MIB:
            return
        time.sleep(1)
    gpu = max(growth, key=growth.get)
    say(note=f"GPU {gpu} still holds {growth[gpu]} MiB more than before")
