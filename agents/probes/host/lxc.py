"""LXC containers and their GPU nodes: another way to the GPUs, without VFIO and its gates.

/etc/pve/lxc/*.conf (pct.conf(5), Proxmox VE 9). A container uses the host's own devices, so the host's driver decides
about peer access.
"""

from agents.facts.host import LXC
from agents.parsing import lxc_config
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no container is configured"
_SH = rf"""[ -d /etc/pve/lxc ] || exit 127
for f in /etc/pve/lxc/*.conf; do
  [ -e "$f" ] || {{ echo '{_NONE}'; continue; }}
  echo "### $f"; sed -e '/^#/d' -e '/^description:/d' "$f"
done"""


def parse(output: Output) -> Readings:
    containers, lines = lxc_config.parse(output.stdout)
    if containers:
        missing = ("the end of the output",) if output.truncated else ()
        return (LXC.known(containers, lines=lines, missing=missing),)
    if output.tool_missing:
        return (LXC.unsupported("no LXC containers of Proxmox on this machine"),)
    if output.refused:
        return (LXC.not_run("reading the configurations was refused; root may"),)
    if _NONE in output.stdout:
        return (LXC.absent(_NONE),)
    return (LXC.unreadable("no line of a container's configuration in the output"),)


probe = Probe(
    __name__,
    title="LXC containers",
    commands=(Command(_SH, root=True),),
    supplies=(LXC,),
    parse=parse,
    signature=Signature(
        typed=r"\bpct\s+(?:config|list)\b|/lxc/\d+\.conf",
        starts=(r"^### \S*/lxc/\d+\.conf", r"^(?:unprivileged: [01]|rootfs: \S+|lxc\.[\w.]+: |dev\d+: /dev/|mp\d+: )"),
        belongs=r"^[a-z][\w.]*: |^\[[^\]]+\]$|^### |^\s*#",
        with_command=True,
    ),
    root_adds="the containers' configurations",
    left_out="descriptions and comments",
)
