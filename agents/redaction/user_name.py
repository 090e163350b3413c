"""Login names in prompts, home folders, sudo's and sshd's lines. Names that every system has stay."""

from collections.abc import Iterator

from agents.redactor import PROMPT, Redactor, Span, clue, spans

_NAME = r"(?P<user>[A-Za-z_][\w.-]{0,31})"
_CLUES = (
    PROMPT,
    clue(rf"(?:/home|/Users|\\Users)[/\\]{_NAME}", "/home/", "/Users/", "\\Users\\"),
    clue(rf"\b(?:ssh|scp|rsync|sftp)\b[^\n@]{{0,80}}[ \t=]{_NAME}@[\w.-]+", "ssh", "scp", "rsync", "sftp"),
    clue(rf"^[ \t|>!]*ciuser: *{_NAME}", "ciuser:"),
    clue(rf"\b(?:USER|LOGNAME|SUDO_USER|USERNAME)=\"?{_NAME}", "USER=", "LOGNAME=", "USERNAME="),
    clue(rf"(?i)\"(?:user|username|user_name)\" *: *\"{_NAME}", '"user'),
    clue(rf"\bpassword for {_NAME}:", "password for "),
    clue(rf"\b(?:for|by) user {_NAME}", " user "),
    clue(rf"\bAccepted (?:publickey|password) for {_NAME}", "Accepted "),
    clue(rf"\b[ug]id=\d+\({_NAME}\)", "uid=", "gid="),
    clue(rf"\bsudo(?:\[\d+\])?: +{_NAME} : ", "sudo"),
    clue(rf"\b{_NAME}@(?:pam|pve)\b", "@pam", "@pve"),
    clue(rf"[a-z]://{_NAME}(?::[^\s/@]{{1,80}})?@", "://"),
)
_OF_EVERY_SYSTEM = frozenset(
    {
        *("root", "ubuntu", "debian", "admin", "administrator", "user", "users", "ec2-user"),
        *("centos", "fedora", "rocky", "opc", "azureuser", "nobody", "daemon", "www-data", "git"),
        *("vagrant", "container", "docker", "runner", "jovyan", "none", "null", "kvm", "qemu"),
        *("libvirt-qemu", "postgres", "redis", "public", "default", "shared", "linuxbrew"),
        *("messagebus", "syslog"),
    }
)


def find(text: str) -> Iterator[Span]:
    for start, end in spans(_CLUES, text, "user"):
        name = text[start:end].rstrip(".-")
        if name.lower() not in _OF_EVERY_SYSTEM:
            yield start, start + len(name)


redactor = Redactor(__name__, find, spreads=True)
