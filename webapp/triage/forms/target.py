"""Adding a machine: by SSH, or this one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from django import forms

from webapp.accounts.models import User
from webapp.triage.credentials import may_use_own_keys
from webapp.triage.models import StoredKey

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*\$?")
_HOP = rf"{_USER.pattern}@{_HOST.pattern.replace(':', '')}(?::\d{{1,5}})?"
_JUMP = re.compile(rf"{_HOP}(?:,{_HOP})*")


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, RuntimeError):  # a name too long; ~nobody
        return False


class SshTargetForm(forms.Form):
    host = forms.CharField(label="Host", max_length=255, help_text="name or address")
    port = forms.IntegerField(label="Port", min_value=1, max_value=65535, initial=22)
    user = forms.CharField(label="User", max_length=64, initial="root")
    stored_key = forms.ModelChoiceField(
        StoredKey.objects.none(),
        label="Stored key",
        required=False,
        help_text="yours, or one an administrator shared; see “Keys” above",
    )
    identity_file = forms.CharField(
        label="Key file",
        max_length=400,
        required=False,
        help_text="on the machine that runs Peerpath; empty: your SSH agent and the keys in ~/.ssh",
    )
    jump = forms.CharField(
        label="Jump hosts",
        max_length=300,
        required=False,
        help_text="user@host:port in the order of the way, separated by commas; or empty",
    )

    def __init__(self, *given: Any, user: User, **more: Any) -> None:
        """Offers the keys that this person may use; the machine's own to those whose they are."""
        super().__init__(*given, **more)
        usable = StoredKey.objects.usable_by(user)
        keys = [(key.pk, str(key)) for key in usable]
        own = may_use_own_keys(user)
        self.may_connect = own or bool(keys)
        key_field = cast("forms.ModelChoiceField[StoredKey]", self.fields["stored_key"])
        key_field.queryset = usable
        key_field.choices = [("", "none: this machine’s own" if own else "---------"), *keys]
        if not own:
            key_field.required = True
            del self.fields["identity_file"]
        elif not keys:
            del self.fields["stored_key"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("stored_key") and data.get("identity_file"):
            self.add_error("identity_file", "Choose a stored key or a file, not both.")
        return data

    def clean_host(self) -> str:
        return self._matching("host", _HOST, "A host name or address, without user and port.")

    def clean_user(self) -> str:
        return self._matching("user", _USER, "A login name, such as root.")

    def clean_jump(self) -> str:
        value = self.cleaned_data["jump"] = re.sub(r"\s", "", self.cleaned_data["jump"])
        return self._matching("jump", _JUMP, "Write it as user@host:port.") if value else ""

    def clean_identity_file(self) -> str:
        value: str = self.cleaned_data["identity_file"]
        if value and not _is_file(value):
            raise forms.ValidationError("There is no such file on the machine that runs Peerpath.")
        return value

    @staticmethod
    def is_host(value: str) -> bool:
        return bool(_HOST.fullmatch(value))

    @staticmethod
    def is_user(value: str) -> bool:
        return bool(_USER.fullmatch(value))

    def _matching(self, name: str, pattern: re.Pattern[str], advice: str) -> str:
        value: str = self.cleaned_data[name].strip()
        if not pattern.fullmatch(value):
            raise forms.ValidationError(advice)
        return value

    def values(self) -> dict[str, Any]:
        return {"agent": "ssh", **self.cleaned_data}
