"""Names of machines and VMs: prompts, uname, journals, NCCL's line prefix, Proxmox, QEMU, URLs."""

import re
from collections.abc import Iterator

from agents.redactor import PROMPT, Redactor, Span, clue, spans

_NAME = r"(?P<host>[A-Za-z0-9_][\w.-]{0,62})"
_START = r"^[ \t|>!]{0,8}"
_PROCESS = r"[\w./()-]{1,40}(?:\[\d+\])?:"
_OWN_DOMAINS = ("lan", "local", "internal", "corp", "intranet", "localdomain")
_CLUES = (
    PROMPT,
    clue(rf"(?i)\b(?:host|node)_?name[\"']? *[:=] *[\"']?{_NAME}", *("hostname", "host_name", "nodename", "node_name")),
    clue(rf"{_START}Linux {_NAME} \d+\.\d+", "Linux "),
    clue(rf"{_START}[^\W\d_]{{3,5}}\.? [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? {_NAME} {_PROCESS}"),
    clue(rf"{_START}\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\S* {_NAME} {_PROCESS}"),
    # A line may stand right after another rank's: "via P2P/IPC/readgpu1:701:741 [1] NCCL INFO".
    clue(
        r"(?<![\w.-])(?:(?<=/IPC/)read|(?<=/CUMEM/)read|(?<=/direct/)direct|(?<=Init )COMPLETE)?"
        rf"{_NAME}:\d+:\d+ (?:\[\d+\] )?NCCL ",
        " NCCL ",
    ),
    clue(rf"\b[Pp]id +\d+ on +{_NAME} +device ", " device "),
    clue(rf"/nodes/{_NAME}", "/nodes/"),
    clue(rf"[,: \t]node=[\"']?{_NAME}", "node="),
    clue(rf"\"node\" *: *\"{_NAME}\"", '"node"'),
    clue(rf"{_START}name: {_NAME}[ \t\r]*$", "name: "),
    clue(
        rf"{_START}(?:\d{{1,9}}|-) +{_NAME} +(?:running|stopped|shut off|paused|suspended|prelaunch)\b",
        *(" running", " stopped", " shut off", " paused", " suspended", " prelaunch"),
    ),
    clue(rf"[ '\"]-name [\"']?(?:guest=)?{_NAME}", "-name "),
    clue(rf"^ *displayName *= *\"{_NAME}", "displayName"),
    clue(rf"\blxc\.uts\.name *= *{_NAME}", "lxc.uts.name"),
    clue(rf"\b(?:ssh|scp|rsync|sftp)\b[^\n@]{{0,80}}[ \t=][\w.-]+@{_NAME}", *("ssh", "scp", "rsync", "sftp")),
    clue(
        rf"\b(?:MASTER_ADDR|dist-init-addr|dist_init_addr|init_method)[= '\"]+(?:tcp://)?{_NAME}",
        *("MASTER_ADDR", "dist-init-addr", "dist_init_addr", "init_method"),
    ),
    clue(rf"\b(?:https?|tcp|ssh|s3|nfs)://(?:[^\s/@]{{1,80}}@)?{_NAME}", "://"),
    # /etc/hosts
    clue(rf"^(?:\d{{1,3}}\.){{3}}\d{{1,3}}[ \t]+(?:[\w.-]+[ \t]+)?{_NAME}[ \t]*$"),
    clue(
        r"(?<![\w./@-])(?P<host>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}"
        rf"\.(?:{'|'.join(_OWN_DOMAINS)}))(?![\w(-]|\.\w)",
        *(f".{domain}" for domain in _OWN_DOMAINS),
    ),
)
# Not within one line.
_DOMAIN = re.compile(rf"<domain\b[^>]{{0,200}}>\s{{0,20}}<name>{_NAME}</name>")
# Public sites, and default names of machines.
_PUBLIC = re.compile(
    r"(?i)(?:[\w-]+\.)*(?:github|gitlab|githubusercontent|nvidia|huggingface|hf|pytorch|python|pypi|"
    r"kernel|proxmox|ubuntu|debian|docker|google|googleapis|microsoft|amazonaws|redhat|vllm|sglang|"
    r"lmsys|openai|modelscope|example|readthedocs|apache|w3|qemu|libvirt|freedesktop|mozilla)"
    r"\.(?:com|org|io|co|ai|net|cn|dev|gov|edu)"
)
_NOBODYS = frozenset(
    {
        *("localhost", "localhost.localdomain", "ubuntu", "debian", "pve", "proxmox", "none"),
        *("null", "linux", "unknown", "ip6-localhost"),
    }
)
_NUMBERS = re.compile(r"[\d.]+")


def find(text: str) -> Iterator[Span]:
    candidates = [*spans(_CLUES, text, "host"), *(m.span("host") for m in _DOMAIN.finditer(text))]
    for start, end in candidates:
        name = text[start:end].rstrip(".-_")
        if name and not _is_nobodys(name):
            yield start, start + len(name)


def _is_nobodys(name: str) -> bool:
    return bool(name.lower() in _NOBODYS or _NUMBERS.fullmatch(name) or _PUBLIC.fullmatch(name))


redactor = Redactor(__name__, find, spreads=True)
