"""`docker inspect` and `docker ps`, podman's too.

inspect (Docker Engine API v1.51): an array of objects with Name, Config.Image, Config.Env, State.Running,
HostConfig.IpcMode, ShmSize (bytes), DeviceRequests[].Count (-1 is all) and DeviceIDs, NetworkMode, Privileged,
Ulimits. Only variables that steer NCCL, CUDA and engines are kept from the environment, since others may be secret.
"""

import re
from typing import Any

from agents.facts.nccl import EngineContainer
from agents.parsing import json_text
from agents.parsing.engine import masked
from agents.parsing.json_text import at, number

_ENGINES = re.compile(r"vllm|sglang|lmsys|tensorrt|tritonserver|lmdeploy|llama\.cpp|text-generation", re.I)
_STEERING = re.compile(
    r"^(?:NCCL_|CUDA_|NVIDIA_(?:VISIBLE_DEVICES|DRIVER_CAPABILITIES)$|VLLM_|SGLANG_|SGL_|TORCH_|OMP_|FLASHINFER_)"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_PS_HEAD = re.compile(r"^CONTAINER ID\s+IMAGE\s+COMMAND\s")
_PS_ROW = re.compile(
    r"^(?P<id>[0-9a-f]{12})\s+(?P<image>\S{1,200})\s+\"(?P<command>[^\"]{0,400})\"?\s.{0,400}?"
    r"(?P<status>\bUp |\bExited |\bCreated\b|\bRestarting |\bPaused\b).{0,300}?(?P<name>\S{1,80})\s*$"
)

Answer = tuple[tuple[EngineContainer, ...], tuple[int, ...], tuple[str, ...]]


def parse(text: str) -> Answer:
    """Containers that run an engine or hold GPUs, the lines, and what is missing; empty when there is none."""
    inspected: list[EngineContainer] = []
    lines: list[int] = []
    for line, value in json_text.values(text):
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict) and isinstance(entry.get("HostConfig"), dict):
                lines.append(line)
                inspected += [container for container in [_container(entry)] if container]
    if lines:
        return tuple(inspected), tuple(dict.fromkeys(lines)), ()
    return _listed_containers(text)


def is_inspect(text: str) -> bool:
    return '"HostConfig"' in text or bool(_PS_HEAD.search(text))


def _container(entry: dict[str, Any]) -> EngineContainer | None:
    host, config = entry["HostConfig"], entry.get("Config")
    image = at(config, "Image")
    gpus = _gpus(host, _environment(at(config, "Env")))
    if gpus is None and not _ENGINES.search(str(image or "")):
        return None
    ipc = str(host.get("IpcMode") or "") or None
    size = number(host.get("ShmSize"))
    shm = int(size) // 1024**2 if size is not None and 0 < size < 1e15 and ipc != "host" else None
    return EngineContainer(
        str(entry.get("Name", "?")).lstrip("/")[:100],
        str(image)[:200] if image else None,
        _bool_or_none(at(entry, "State", "Running")),
        ipc,
        shm,
        gpus,
        str(host.get("NetworkMode") or "")[:60] or None,
        _bool_or_none(host.get("Privileged")),
        _memlock(host.get("Ulimits")),
        _environment(at(config, "Env")),
    )


def _gpus(host: dict[str, Any], env: dict[str, str]) -> str | None:
    """The requested GPUs: "all", "2 of any", "0,1"; with the NVIDIA runtime its variable names them."""
    requests = host.get("DeviceRequests")
    for request in requests if isinstance(requests, list) else []:
        ids, count = at(request, "DeviceIDs"), number(at(request, "Count"))
        if isinstance(ids, list) and ids:
            return ",".join(str(i)[:60] for i in ids[:64])
        if count is not None:
            return "all" if count < 0 else f"{int(count)} of any" if count else None
    devices = host.get("Devices")
    nodes = [str(at(d, "PathOnHost")) for d in devices] if isinstance(devices, list) else []
    cards = [node for node in nodes if re.fullmatch(r"/dev/nvidia\d{1,3}", node)]
    if cards:
        return ",".join(node.removeprefix("/dev/nvidia") for node in cards)
    if host.get("Runtime") == "nvidia":
        return env.get("NVIDIA_VISIBLE_DEVICES", "all")
    return None


def _environment(lines: Any) -> dict[str, str]:
    pairs = [str(line).split("=", 1) for line in lines] if isinstance(lines, list) else []
    return {
        pair[0][:80]: masked(pair[1])[:400]
        for pair in pairs
        if len(pair) == 2 and _STEERING.match(pair[0]) and not _SECRET.search(pair[0])
    }


def _memlock(limits: Any) -> bool | None:
    for limit in limits if isinstance(limits, list) else []:
        if at(limit, "Name") == "memlock":
            return number(at(limit, "Soft")) == -1
    return None


def _bool_or_none(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _listed_containers(text: str) -> Answer:
    """`docker ps`: names and images only."""
    containers: list[EngineContainer] = []
    lines: list[int] = []
    for line_number, raw in enumerate(text.splitlines(), 1):
        row = _PS_ROW.match(raw[:2000].strip().lstrip("> "))
        if row and _ENGINES.search(f"{row['image']} {row['command']}"):
            running = row["status"].strip() == "Up"
            containers.append(EngineContainer(row["name"], row["image"], running))
            lines.append(line_number)
    missing = ("how they were started: `docker inspect` says",) if containers else ()
    return tuple(containers), tuple(lines), missing
