"""What cannot be taken back, or stops others' work, is done by typing the name of what it is done to."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest


def typed(request: HttpRequest, name: str, verb: str) -> bool:
    """Whether the person typed this name; where not, a message says what to type."""
    if request.POST.get("confirm", "").strip() == name.strip():
        return True
    messages.error(request, f"Nothing was done. Type {name} to {verb}.")
    return False
