"""Proxmox's LXC configurations: /etc/pve/lxc/<id>.conf and `pct config`.

pct.conf(5), Proxmox VE 9: `hostname: x`, `unprivileged: 1`, `dev0: /dev/nvidia0,gid=44`, raw
`lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file` and `lxc.cgroup2.devices.allow: c
195:* rwm`. Sections in brackets are snapshots.
"""

import re

from agents.facts.host import LxcContainer

_FILE = re.compile(r"(?:^#+ |\bcat )(?:\S*/)?lxc/(?P<id>\d{1,9})\.conf$|\bpct config (?P<typed>\d{1,9})\b")
_PAIR = re.compile(r"^[\s>|]*(?P<key>[a-z][\w.]{1,60}): (?P<value>\S.*)$")
_NODE = re.compile(r"(?<![\w/])/dev/nvidia[\w/-]{0,40}")
# Keys that only a container has.
_MARKS = re.compile(r"^(?:unprivileged|rootfs|lxc\..*|mp\d+|dev\d+|cmode|swap)$")

Answer = tuple[tuple[LxcContainer, ...], tuple[int, ...]]


def parse(text: str) -> Answer:
    """Every container whose lines hold a key that VMs do not have."""
    blocks: list[tuple[int | None, list[tuple[str, str]]]] = [(None, [])]
    lines: list[int] = []
    snapshot = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:2000]
        opened = _FILE.search(line)
        if opened:
            blocks.append((int(opened["id"] or opened["typed"]), []))
            snapshot = False
        elif re.match(r"^\[[^\]]{1,80}\]\s*$", line):
            snapshot = True
        elif not snapshot and (pair := _PAIR.match(line)):
            blocks[-1][1].append((pair["key"], pair["value"].strip()))
            lines.append(number)
    containers = [_container(i, pairs) for i, pairs in blocks if any(_MARKS.match(k) for k, _ in pairs)]
    return tuple(containers), tuple(lines) if containers else ()


def _container(container_id: int | None, pairs: list[tuple[str, str]]) -> LxcContainer:
    config: dict[str, str] = {}
    nodes: list[str] = []
    for key, value in pairs:
        config.setdefault(key, value)
        if re.match(r"^(?:dev\d+|lxc\.mount\.entry|mp\d+)$", key):
            nodes += _NODE.findall(value)[:1]
    flag = config.get("unprivileged")
    privileged = {"1": True, "0": False}.get(flag) if flag else None
    return LxcContainer(container_id, config.get("hostname"), privileged, tuple(dict.fromkeys(nodes)), config)
