"""Where browsers give passkeys: https and localhost alone, and never a numeric address."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings


def place() -> str:
    """The name that passkeys are bound to, of PEERPATH_PUBLIC_URL; "" where browsers give none."""
    parts = urlsplit(settings.PUBLIC_URL)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host if parts.scheme == "https" or host == "localhost" else ""
    return ""


def origin() -> str:
    parts = urlsplit(settings.PUBLIC_URL)
    return f"{parts.scheme}://{parts.netloc}"
