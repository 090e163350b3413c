"""ACS on the host's bridges: whether they redirect peer traffic up to the root.

`lspci -vvv`, ACSCtl (PCI Express base specification, Access Control Services). ReqRedir+ or CmpltRedir+ at a switch's
downstream port causes the detour; a root port without a switch causes none.
"""

import re
from collections.abc import Iterable

from agents.facts import Reading
from agents.facts.host import ACS, AcsPort
from agents.parsing import lspci
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = "lspci -D -vvv 2>/dev/null | grep -E '^[0-9a-f]|ACSC|access denied'"
_CONTROL = re.compile(r"^\s*ACSCtl:\s*(.{1,200})$")
_REDIRECT = re.compile(r"(?:ReqRedir|CmpltRedir)\+")
_TYPED = re.compile(r"lspci\b.{0,80}\s-s\s*([0-9a-fA-F:.]{7,16})")


def parse(output: Output) -> Readings:
    listed = lspci.parse(output.stdout)
    ports = _of_devices(listed) or _of_typed(output.lines)
    if ports:
        lines = tuple(line for _, line in ports)
        missing = ("the end of the list",) if output.truncated else ()
        return (ACS.known(tuple(port for port, _ in ports), lines=lines, missing=missing),)
    return (_no_reading(output, listed),)


def _of_devices(listed: Iterable[lspci.Device]) -> list[tuple[AcsPort, int]]:
    """Bridges that show their ACS control register."""
    return [
        (_port(device.address, control[1]), number)
        for device in listed
        if device.class_code == "0604" or device.class_name == "PCI bridge"
        for number, detail in device.details
        if "ACSCtl" in detail and (control := _CONTROL.match(detail))
    ]


def _of_typed(lines: list[str]) -> list[tuple[AcsPort, int]]:
    """`lspci -vvv -s 40:01.1 | grep ACSCtl` names its device only in the command."""
    ports: list[tuple[AcsPort, int]] = []
    address = ""
    for number, line in enumerate(lines, 1):
        typed = _TYPED.search(line[:400]) if "lspci" in line else None
        control = _CONTROL.match(line[:400]) if "ACSCtl" in line else None
        if typed and re.fullmatch(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", typed[1]):
            address = lspci.full_address(typed[1])
        elif control and address:
            ports.append((_port(address, control[1]), number))
    return ports


def _port(address: str, flags: str) -> AcsPort:
    return AcsPort(address, bool(_REDIRECT.search(flags)), flags.strip())


def _no_reading(output: Output, listed: tuple[lspci.Device, ...]) -> Reading[tuple[AcsPort, ...]]:
    if output.tool_missing:
        return ACS.unsupported("lspci is not installed")
    if output.refused:
        return ACS.not_run("the capabilities of PCI devices are shown to root only")
    if listed and output.alternative >= 0 and not output.truncated:
        return ACS.absent("no bridge has Access Control Services")
    if any(device.class_name == "PCI bridge" for device in listed):
        return ACS.not_run("the text shows bridges without their capabilities")
    return ACS.unreadable("no bridge with an ACS register in the output")


probe = Probe(
    __name__,
    title="ACS on the bridges",
    commands=(Command(_SH, needs=("lspci",), root=True),),
    supplies=(ACS,),
    parse=parse,
    signature=Signature(
        typed=r"lspci\b.*(?:ACS|acs)",
        starts=(r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] PCI bridge\b.*\(prog-if ", r"^\s*ACS(?:Cap|Ctl):"),
        belongs=r"^\s+\S|ACSC|^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] |^\.{3,}$",
        score=0.8,
        any_machine=True,
        with_command=True,
    ),
    timeout_s=40,
    slow=True,
    root_adds="the ACS registers, which only root may read",
)
