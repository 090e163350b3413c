"""Template context of every page."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def everywhere(request: HttpRequest) -> dict[str, Any]:
    return {"public_url": settings.PUBLIC_URL}
