"""Adding a machine: by ssh, or this one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django import forms

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*\$?")
_JUMP = re.compile(rf"{_USER.pattern}@{_HOST.pattern.replace(':', '')}(?::\d{{1,5}})?")


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, RuntimeError):  # a name too long; ~nobody
        return False


class SshTargetForm(forms.Form):
    host = forms.CharField(label="Host", max_length=255, help_text="name or address")
    port = forms.IntegerField(label="Port", min_value=1, max_value=65535, initial=22)
    user = forms.CharField(label="User", max_length=64, initial="root")
    identity_file = forms.CharField(
        label="Key file",
        max_length=400,
        required=False,
        help_text="on the machine that runs Peerpath; empty: your ssh agent and ~/.ssh keys",
    )
    jump = forms.CharField(
        label="Jump host", max_length=300, required=False, help_text="user@host:port, or empty"
    )

    def clean_host(self) -> str:
        return self._matching("host", _HOST, "A host name or address, without user and port.")

    def clean_user(self) -> str:
        return self._matching("user", _USER, "A login name, such as root.")

    def clean_jump(self) -> str:
        value = self.cleaned_data["jump"]
        return self._matching("jump", _JUMP, "Write it as user@host:port.") if value else ""

    def clean_identity_file(self) -> str:
        value: str = self.cleaned_data["identity_file"]
        if value and not _is_file(value):
            raise forms.ValidationError("There is no such file on the machine that runs Peerpath.")
        return value

    def _matching(self, name: str, pattern: re.Pattern[str], advice: str) -> str:
        value: str = self.cleaned_data[name].strip()
        if not pattern.fullmatch(value):
            raise forms.ValidationError(advice)
        return value

    def values(self) -> dict[str, Any]:
        return {"agent": "ssh", **self.cleaned_data}
