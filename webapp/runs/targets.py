"""Machines of a session: the fields of one that is reached by SSH, and adding it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import transaction

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, StoredKey, Target
from webapp.runs.credentials import may_connect, may_use_own_keys

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*\$?")
_HOP = rf"{_USER.pattern}@{_HOST.pattern.replace(':', '')}(?::\d{{1,5}})?"
_JUMP = re.compile(rf"{_HOP}(?:,{_HOP})*")


class TargetError(Exception):
    """problems: by field, a sentence that says what to write."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in problems.items()))
        self.problems = problems


def ssh_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an SSH target without the blanks around them; those that are not there are not missed.
    Raises TargetError."""
    fields = {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
    if "jump" in fields:
        fields["jump"] = re.sub(r"\s", "", fields["jump"])
    if problems := dict(_problems(fields)):
        raise TargetError(problems)
    return fields


def _problems(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    identity = fields.get("identity_file")
    if "host" in fields and not _HOST.fullmatch(fields["host"]):
        yield "host", "A host name or address, without user and port."
    if "user" in fields and not _USER.fullmatch(fields["user"]):
        yield "user", "A login name, such as root."
    if fields.get("jump") and not _JUMP.fullmatch(fields["jump"]):
        yield "jump", "Write it as user@host:port."
    if identity and not _is_file(identity):
        yield "identity_file", "There is no such file on the machine that runs Peerpath."
    elif identity and fields.get("stored_key"):
        yield "identity_file", "Choose a stored key or a file, not both."


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, RuntimeError):  # a name too long; ~nobody
        return False


def refuse_unless_may_add(user: User, agent: str) -> None:
    """Raises PermissionDenied for those who may not add a target of this agent."""
    if agent == "local":
        if not user.is_staff:
            raise PermissionDenied("Only an administrator may run probes on this machine itself.")
    elif not may_connect(user):
        raise PermissionDenied("Store a key of yours first, on the page “Keys”.")


def with_usable_key(fields: Mapping[str, Any], user: User) -> dict[str, Any]:
    """Replaces the id in stored_key by a key that this person may use ("" is none). Removes identity_file for
    people who may not use this machine's own keys. Raises TargetError."""
    own = may_use_own_keys(user)
    key_id = str(fields.get("stored_key", ""))
    key = _usable_key(key_id, user) if key_id else None
    if key is None and (key_id or not own):
        raise TargetError({"stored_key": "Name the id of a key that you may use."})
    return {k: v for k, v in fields.items() if own or k != "identity_file"} | {"stored_key": key}


def _usable_key(key_id: str, user: User) -> StoredKey | None:
    try:
        return StoredKey.objects.usable_by(user).filter(pk=UUID(key_id)).first()
    except ValueError:
        return None


def target_add(session: DiagnosisSession, role: str, user: User, fields: Mapping[str, Any]) -> Target:
    """fields: agent, and those of an SSH target where it is one."""
    with transaction.atomic():
        target = Target.objects.create(session=session, role=role, created_by=user, **fields)
        about = {"key": target.stored_key.fingerprint} if target.stored_key else {}
        Event.record(session, "target_added", user, role=role, target=str(target), **about)
    return target
