"""Form for an SSH key to store."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.records.stored_keys import LARGEST_KEY


class StoredKeyForm(forms.Form):
    """The page never sends typed secrets back: after an error the form comes without them."""

    name = forms.CharField(label="Name", max_length=80, help_text="as you will choose it by")
    private_key = forms.CharField(
        label="Private key",
        max_length=LARGEST_KEY,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "autocomplete": "off", "spellcheck": "false", "class": "mono"}),
        help_text="the whole file, from BEGIN to END",
    )
    passphrase = forms.CharField(
        label="Passphrase",
        max_length=1000,
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="if the key has one; it is stored with the key",
    )
    certificate = forms.CharField(
        label="Certificate",
        max_length=LARGEST_KEY,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "mono"}),
        help_text="OpenSSH’s …-cert.pub, if the machine trusts an authority instead of the key",
    )
    shared = forms.BooleanField(
        label="Everyone here may connect with it", required=False, help_text="administrators only"
    )

    def __init__(self, *positional: Any, user: User, **more: Any) -> None:
        super().__init__(*positional, **more)
        if not user.is_staff:
            del self.fields["shared"]

    def without_secrets(self) -> StoredKeyForm:
        """The form to show again, without the typed secrets."""
        secret = ("private_key", "passphrase")
        self.data = {name: self.data[name] for name in self.data if name not in secret}
        return self
