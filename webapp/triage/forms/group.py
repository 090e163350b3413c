"""Adding many machines at once."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.triage.forms.target import SshTargetForm
from webapp.triage.machines import MOST, Address


class GroupForm(SshTargetForm):
    """One machine a line; everything else is the same for all of them."""

    field_order = ("machines", "user", "port", "stored_key", "identity_file", "jump", "known_hosts")
    machines = forms.CharField(
        label="Machines",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"}),
        help_text="one a line: host, user@host or user@host:port",
    )
    known_hosts = forms.CharField(
        label="Host keys you vouch for",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text="lines of a known_hosts file you trust; without, each key is shown and asked about",
    )

    def __init__(self, *given: Any, user: User, **more: Any) -> None:
        super().__init__(*given, user=user, **more)
        del self.fields["host"]

    def clean_machines(self) -> list[Address]:
        """Fields are cleaned in their order, so user and port are not there yet: see addresses."""
        lines = [line.strip() for line in self.cleaned_data["machines"].splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        if len(lines) > MOST:
            raise forms.ValidationError(f"At most {MOST} machines.")
        return [self._address(line) for line in lines]

    def _address(self, line: str) -> Address:
        user, _, where = line.rpartition("@")
        host, _, port = where.partition(":") if where.count(":") == 1 else (where, "", "")
        one = SshTargetForm.base_fields
        try:
            number = one["port"].clean(port) if port else 0
        except forms.ValidationError as error:
            raise forms.ValidationError(f"{line[:80]}: the port is 1 to 65535.") from error
        if not self.is_host(host) or (user and not self.is_user(user)):
            raise forms.ValidationError(f"{line[:80]}: write user@host:port.")
        return Address(user, host, number)

    @property
    def addresses(self) -> list[Address]:
        """With the user and port of the form where a line has none."""
        user, port = self.cleaned_data["user"], self.cleaned_data["port"]
        return [Address(a.user or user, a.host, a.port or port) for a in self.cleaned_data["machines"]]

    def values(self) -> dict[str, Any]:
        names = ("stored_key", "identity_file", "jump")
        return {name: self.cleaned_data[name] for name in names if name in self.cleaned_data}
