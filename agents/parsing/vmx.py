"""VMware's .vmx files: `key = "value"` lines.

Keys: displayName, uuid.bios, firmware, memSize (MiB), pciPassthruN.id ("00000:065:00.0", bus in decimal),
pciPassthru.use64bitMMIO, pciPassthru.64bitMMIOSizeGB, pciPassthru.allowP2P, pciPassthru.RelaxACSforP2P,
hypervisor.cpuid.v0 (VMware vSphere, "Using vSphere with GPU passthrough"; NVIDIA GPU operator, "GPUDirect
RDMA on vSphere", 2025).
"""

import re

from agents.facts.host import VmxConfig

_PAIR = re.compile(r"^[\s>|]*(?P<key>[A-Za-z][\w.:]{1,80})\s*=\s*\"(?P<value>[^\"]{0,1000})\"\s*$")
_ID = re.compile(r"(?P<domain>\d{4,5}):(?P<bus>\d{3}):(?P<device>\d{2})\.(?P<function>[0-7])")
_MARKS = re.compile(r"^(?:config\.version|virtualhw\.version|displayname|pcipassthru\d*\..*|vmci0\..*)$")

Answer = tuple[tuple[VmxConfig, ...], tuple[int, ...]]


def parse(text: str) -> Answer:
    """One configuration for each file; a second displayName opens the next."""
    files: list[dict[str, str]] = []
    lines: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        pair = _PAIR.match(raw[:1200])
        if pair is None:
            continue
        key = pair["key"].lower()
        if not files or (key == "displayname" and key in files[-1]):
            files.append({})
        files[-1][key] = pair["value"].strip()
        lines.append(number)
    real = [pairs for pairs in files if any(_MARKS.match(key) for key in pairs)]
    return tuple(_config(pairs) for pairs in real), tuple(lines) if real else ()


def _config(pairs: dict[str, str]) -> VmxConfig:
    ids = [(key, value) for key, value in pairs.items() if re.fullmatch(r"pcipassthru\d+\.id", key)]
    hypervisor_visible = _switch(pairs.get("hypervisor.cpuid.v0"))
    return VmxConfig(
        pairs.get("displayname"),
        _uuid(pairs.get("uuid.bios", "")),
        pairs.get("firmware"),
        _whole_number(pairs.get("memsize")),
        tuple(pci_address for _, value in ids if (pci_address := address(value))),
        _switch(pairs.get("pcipassthru.use64bitmmio")),
        _whole_number(pairs.get("pcipassthru.64bitmmiosizegb")),
        _switch(pairs.get("pcipassthru.allowp2p")),
        _switch(pairs.get("pcipassthru.relaxacsforp2p")),
        None if hypervisor_visible is None else not hypervisor_visible,
    )


def address(text: str) -> str | None:
    """ "0000:41:00.0" from "00000:065:00.0": bus and device are decimal there."""
    match = _ID.fullmatch(text.strip())
    if match is None or int(match["bus"]) > 255 or int(match["device"]) > 31:
        return None
    bus, device = int(match["bus"]), int(match["device"])
    return f"{int(match['domain']):04x}:{bus:02x}:{device:02x}.{match['function']}"


def _uuid(text: str) -> str | None:
    """ "56 4d 7f 2c 12 34 56 78-9a bc de f0 12 34 56 78" as firmware shows it."""
    digits = re.sub(r"[^0-9a-fA-F]", "", text).lower()
    if len(digits) != 32:
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _switch(text: str | None) -> bool | None:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(
        (text or "").strip().lower()
    )


def _whole_number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text.strip()) else None
