"""Form for a new machine: by SSH, or this one."""

from typing import Any, cast

from django import forms

from webapp.accounts.models import User
from webapp.records.models import StoredKey
from webapp.runs.credentials import may_use_own_keys
from webapp.runs.targets import TargetError, ssh_fields


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

    def __init__(self, *positional: Any, user: User, **more: Any) -> None:
        """Offers the keys that this person may use; the machine's own keys only to persons with a right to them."""
        super().__init__(*positional, **more)
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
        try:
            return ssh_fields(data)
        except TargetError as error:
            for name, text in error.problems.items():
                self.add_error(name, text)
        return data

    def values(self) -> dict[str, Any]:
        return {"agent": "ssh", **self.cleaned_data}
