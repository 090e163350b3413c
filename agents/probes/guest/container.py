"""Whether the probe ran inside a container, and which kind.

It reads marks of the runtimes: /.dockerenv (Docker), /run/.containerenv (Podman), /run/systemd/container and PID 1's
`container=` (LXC, systemd-nspawn), cgroup paths, the Kubernetes variables.
"""

import re

from agents.facts.platform import CONTAINER
from agents.parsing.lspci import LINE_CAP
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""e=/proc/1/environ kinds="docker|kubepods|libpod|lxc|containerd" tool=systemd-detect-virt
for f in /.dockerenv /run/.containerenv; do [ -e $f ] && echo "$f: yes" || echo "$f: no"; done
[ -r /run/systemd/container ] && echo "/run/systemd/container: $(cat /run/systemd/container)"
[ "$KUBERNETES_SERVICE_HOST" ] && echo "KUBERNETES_SERVICE_HOST: set"
[ -r $e ] && echo "pid 1 container: $({ tr "\0" "\n" <$e; } 2>/dev/null | sed -n "s/^container=//p")"
echo "pid 1 cgroup: $(grep -oE "$kinds" /proc/1/cgroup | sort -u | tr "\n" " ")"
echo "pid 1: $(cat /proc/1/comm)"
! command -v $tool >/dev/null || echo "$tool:" $($tool -c 2>/dev/null)"""

_LINE = re.compile(r"^\s*(/\.dockerenv|/run/[\w./]+|[A-Za-z][\w -]{2,30}): ?(.*)$")
_WORDS = {
    "docker": "docker",
    "podman": "podman",
    "libpod": "podman",
    "lxc": "lxc",
    "lxc-libvirt": "lxc",
    "kubepods": "kubernetes",
    "containerd": "containerd",
    "systemd-nspawn": "systemd-nspawn",
    "openvz": "openvz",
    "wsl": "wsl",
    "container-other": "container-other",
}
_LABELS = frozenset(("/.dockerenv", "/run/.containerenv", "/run/systemd/container", "pid 1"))
_LABELS |= {"KUBERNETES_SERVICE_HOST", "pid 1 container", "pid 1 cgroup", "systemd-detect-virt"}
_INIT = frozenset(("systemd", "init", "openrc-init", "runit"))


def parse(output: Output) -> Readings:
    answers, lines = _read_answers(output.stdout)
    if not answers:
        if output.tool_missing:
            return (CONTAINER.unsupported("no tool answered"),)
        return (CONTAINER.unreadable("no mark of a container runtime, nor its absence"),)
    if "KUBERNETES_SERVICE_HOST" in answers or "kubepods" in answers.get("pid 1 cgroup", ""):
        return (CONTAINER.known("kubernetes", lines=tuple(lines.values())),)
    for label, kind in (("/run/.containerenv", "podman"), ("/.dockerenv", "docker")):
        if answers.get(label) == "yes":
            return (CONTAINER.known(kind, lines=(lines[label],)),)
    named = ("/run/systemd/container", "pid 1 container", "systemd-detect-virt", "pid 1 cgroup")
    for label in named:
        for word in answers.get(label, "").split():
            if word in _WORDS:
                return (CONTAINER.known(_WORDS[word], lines=(lines[label],)),)
    if answers.get("systemd-detect-virt") == "none" or answers.get("pid 1") in _INIT:
        return (CONTAINER.known("none", lines=tuple(lines.values())),)
    return (CONTAINER.not_run("no mark of a container; root could read PID 1's environment"),)


def _read_answers(text: str) -> tuple[dict[str, str], dict[str, int]]:
    """Label -> value and label -> line. A lone word is what `systemd-detect-virt -c` prints."""
    answers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:LINE_CAP]
        word, pair = line.strip(), _LINE.match(line)
        label, value = ("", "")
        if word in _WORDS or word == "none":
            label, value = "systemd-detect-virt", word
        elif pair and (pair[1] in _LABELS):
            label, value = pair[1], pair[2].strip()
        if label and label not in answers:
            answers[label], lines[label] = value, number
    return answers, lines


probe = Probe(
    __name__,
    title="Container",
    commands=(Command(_SH),),
    supplies=(CONTAINER,),
    parse=parse,
    signature=Signature(
        typed=r"systemd-detect-virt\s+-\w*c",
        starts=(r"^/\.dockerenv: (?:yes|no)$",),
        belongs=r"^/run/[\w./]+: |^pid 1|^KUBERNETES_|^systemd-detect-virt: |^[a-z-]{2,20}$",
        any_machine=True,
    ),
    root_adds="the environment of process 1, where LXC names itself",
)
