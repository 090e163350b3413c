"""An act that is final or stops others' work needs a confirmation: the person types the name of its object."""

from django.contrib import messages
from django.http import HttpRequest


def typed(request: HttpRequest, name: str, verb: str) -> bool:
    """Whether the person typed this name; if not, a message says what to type."""
    if request.POST.get("confirm", "").strip() == name.strip():
        return True
    messages.error(request, f"Nothing was done. Type {name} to {verb}.")
    return False
