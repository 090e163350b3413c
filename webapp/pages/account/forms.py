"""Forms for people."""

import unicodedata
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.password_validation import validate_password

from webapp.accounts.models import ELSEWHERE, Scope, User


class WelcomeForm(forms.Form):
    """Takes a name and a password, once."""

    username = forms.CharField(label="Your name here", max_length=60, strip=True)
    password = forms.CharField(label="Password", widget=forms.PasswordInput, min_length=10)

    def clean_username(self) -> str:
        # As Django's own form normalises it at sign-in; a name that reads like another one's is not
        # made of what cannot be seen.
        name = unicodedata.normalize("NFKC", " ".join(self.cleaned_data["username"].split()))
        if not name or not name.isprintable():
            raise forms.ValidationError("Use letters, digits and signs that can be seen.")
        if name.casefold() == "peerpath":
            raise forms.ValidationError("What Peerpath does by itself is signed so; choose another.")
        if name.casefold().endswith(ELSEWHERE):
            raise forms.ValidationError(f"Names that end with “{ELSEWHERE.strip()}” are kept.")
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError("That name is taken here; choose another.")
        return name

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "password" in data:
            try:
                validate_password(data["password"], User(username=data.get("username", "")))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return data


class PasswordForm(PasswordChangeForm):
    """Django's own form, on a page where it is one card of several."""

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(user, data)
        self.fields["old_password"].widget.attrs.pop("autofocus", None)
        self.fields["new_password2"].label = "New password again"


class EmailForm(forms.Form):
    email = forms.EmailField(label="E-mail", max_length=254, required=False)


class TokenForm(forms.Form):
    """Takes the name and the rights of a token for a program."""

    LIFETIMES = ((7, "1 week"), (30, "1 month"), (90, "3 months"), (365, "1 year"))
    MEANINGS = (
        (Scope.READ.value, "read what I may read"),
        (Scope.WRITE.value, "change sessions, comment, decide"),
        (Scope.RUN.value, "reach machines and run things on them"),
    )
    name = forms.CharField(label="What for", max_length=60, strip=True)
    scopes = forms.MultipleChoiceField(
        label="It may", choices=MEANINGS, widget=forms.CheckboxSelectMultiple, initial=[Scope.READ.value]
    )
    days = forms.TypedChoiceField(label="Good for", choices=LIFETIMES, coerce=int, initial=30)
