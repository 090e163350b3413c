"""Nothing that a configuration says can change what a script would run.

A script is constant text, a block of quoted values, and two functions that name configuration keys. With
any value the constant text is the same to the byte, each line of values is one assignment of one word,
and the functions name nothing but keys; or there is no script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.facts import View
from agents.facts.host import BOOT_LOADER, PCI_MAPPINGS, BootLoader, PciMapping
from agents.facts.vm import VMS
from agents.parsing import qm_config
from tests.standin.pve_host import ADDRESSES, KPRO6, PveHost
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from tests.webapp.diagnosis.scripts.machines import NODES, known_of, scripts_of
from webapp.diagnosis.case import Advice
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import Do, ScriptError, host_p0, host_p2, host_p3, host_p4
from webapp.diagnosis.scripts.model import Plan
from webapp.diagnosis.scripts.vm_state import vm_state
from webapp.diagnosis.scripts.writing import write

pytestmark = pytest.mark.thorough

BENIGN = qm_config.parse(f"### /etc/pve/qemu-server/128.conf\n{KPRO6}cpu: host\n")[0]
FIELDS = (
    *("name", "uuid", "args", "cpu", "machine", "hostpci0", "hostpci7", "net0", "memory", "cores"),
    *("sockets", "bios", "numa0", "hugepages", "vcpus", "mapping", "path", "node"),
    *("scsi0", "efidisk0", "description", "tags", "smbios1", "boot", "hookscript"),
)
FRAGMENTS = (
    *("$(touch canary)", "`touch canary`", "';touch canary;'", '";touch canary;"', ";touch${IFS}canary"),
    *("|", "&", "&&", ">", "<", "*", "?", "\\", "\\'", "'", '"', "$IFS", "${x}", "$((1))", "#", "!", "~"),
    *("{", "}", "\n", "\r", "\t", "\0", "\x1b[2J", "\x7f", "é", "’", "＄", "\u2028", " -- ", " --yes"),
    *(" -set device.hostpci0.x-nv-gpudirect-clique=0", ",pcie=1", ",mapping=a", ";0000:02:00.0", "EOF", "%s"),
)
SHAPES = (
    "mapping=pro6000{},pcie=0",
    "0000:01:00.0{}",
    "host={}",
    "host,flags={}",
    "-cpu host{}",
    "virtio={},bridge=vmbr0",
    "virtio=BC:24:11:00:01:28{}",
    "pc-q35-9.2{}",
    "128{}",
    "{}",
)
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join),
    st.builds(
        lambda shape, parts: shape.replace("{}", "".join(parts)),
        st.sampled_from(SHAPES),
        st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3),
    ),
)
TITLE = re.compile(r"^# Peerpath P\d \w+, VM 128: [A-Za-z0-9, ]+\.$", re.M)
VALUE = re.compile(r"^[a-z_]+(?:_\d+)?='.*'$", re.M)
KEYED = re.compile(r'^  "\$1" [a-z]+\d* "\$was_\d+" "\$new_\d+"$', re.M)
SETS = re.compile(
    r'^(?:  qm set "\$vmid"| {4})(?: ?--[a-z]+\d* "\$new_\d+"| --delete [a-z0-9,]+)(?: \\| </dev/null)$', re.M
)


def with_value(field: str, value: str) -> Facts:
    config = dict(BENIGN.config)
    mapping = PciMapping("pro6000", "kpro6", ADDRESSES[0], "10de:2bb5")
    if field == "mapping":
        mapping = replace(mapping, mapping=value)
        config |= {f"hostpci{i}": f"mapping={value}" for i in range(8)}
    elif field == "path":
        mapping = replace(mapping, path=value)
    elif field == "node":
        mapping = replace(mapping, node=value)
    else:
        config[field] = value
    vm = replace(
        BENIGN,
        config=config,
        name=value if field == "name" else BENIGN.name,
        uuid=value if field == "uuid" else BENIGN.uuid,
    )
    return facts_of(
        *kvm_guest(),
        VMS.known((vm,), lines=(1,)),
        PCI_MAPPINGS.known((mapping,), lines=(1,)),
        BOOT_LOADER.known(BootLoader.SYSTEMD_BOOT, lines=(1,)),
        NODES,
    )


@cache
def advice() -> dict[str, Advice]:
    """What is advised for the benign VM, so that every part of every phase is asked for."""
    return dict(diagnose(with_value("cores", "64"), vmid=128).advice)


def texts(facts: Facts) -> Iterator[str]:
    """What is generated for each phase and act: header, values and functions, without the constant files."""
    try:
        vm = vm_state(facts, 128)
    except ScriptError:
        return
    plans: dict[str, Callable[[], Plan]] = {
        "P0": lambda: host_p0.plan(vm, Do.APPLY),
        "P2": lambda: host_p2.plan(vm, advice()),
        "P3": lambda: host_p3.plan(vm),
        "P4": lambda: host_p4.plan(vm, advice()),
    }
    for phase, plan in plans.items():
        try:
            made = plan()
        except ScriptError:
            continue
        for act in Do:
            yield write(made, phase, act, View.HOST, 128, ()).text


@cache
def is_one_word(line: str) -> bool:
    return len(shlex.split(line)) == 1


def skeleton(text: str) -> str:
    """The script without values and without the lines that name keys, each checked on its way out."""
    for line in text.splitlines():
        if VALUE.match(line):
            assert is_one_word(line), line
    for pattern in (TITLE, VALUE, KEYED, SETS):
        text = pattern.sub("", text)
    return re.sub(r"\n+", "\n", text)


@cache
def skeletons() -> frozenset[str]:
    """Of the benign machine's scripts."""
    return frozenset(skeleton(text) for text in texts(with_value("cores", "64")))


@settings(max_examples=500, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(FIELDS), HOSTILE), min_size=20, max_size=20))
def test_no_value_changes_what_a_script_would_run(given_values: list[tuple[str, str]]) -> None:
    """500 times 20 values."""
    for field, value in given_values:
        for text in texts(with_value(field, value)):
            assert skeleton(text) in skeletons(), (field, value)


def test_the_check_sees_a_value_that_breaks_out() -> None:
    text = next(iter(texts(with_value("cores", "64"))))
    assert skeleton(text) in skeletons()
    broken = text.replace("vm_name='llm-one'", "vm_name='llm-one'\ntouch canary")
    assert skeleton(broken) not in skeletons()
    with pytest.raises(AssertionError):
        skeleton(text.replace("vm_name='llm-one'", "vm_name='llm-one' touch 'canary'"))


@pytest.mark.service
@pytest.mark.parametrize(
    "args",
    [
        "-name $(touch${IFS}canary)",
        "-name `touch canary`",
        "-name 'a b' ; touch canary",
        '-name "it\'s" && touch canary',
        "-name %s%n \\$HOME {a,b} * ~",
    ],
)
def test_hostile_args_stay_a_value_when_the_script_runs(args: str, tmp_path: Path) -> None:
    """Applied, verified and undone in a folder where a canary would show."""
    host = PveHost(tmp_path / "host", f"{KPRO6}args: {args}\n")
    host.start()
    before, scripts = host.values, scripts_of(known_of(host), "P2")
    for text, words in ((scripts[Do.APPLY], ["--yes"]), (scripts[Do.VERIFY], []), (scripts[Do.ROLLBACK], ["--yes"])):
        ran = host.run(text, *words)
        assert ran.code == 0, ran.said
    assert host.values == before
    assert not list(tmp_path.rglob("canary"))
