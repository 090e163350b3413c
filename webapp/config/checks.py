"""Checks at start, beside those of the settings themselves."""

import difflib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import connection

from webapp.config import environment
from webapp.operations.health import takes_writes

# Read before Python is chosen, or by what a run starts on its machine.
ELSEWHERE = {"PEERPATH_PYTHON", "PEERPATH_RUN", "PEERPATH_LISTEN", "PEERPATH_VERSION"}
_HINT = "Make it, owned by the account that Peerpath runs as, or name another."


@checks.register
def known_settings(**_: Any) -> list[checks.CheckMessage]:
    """Warns of a PEERPATH_ name that no setting has: it is probably misspelt, and has no effect."""
    return list(_unknown_settings(os.environ.keys() - environment.FIELDS.keys() - ELSEWHERE))


@checks.register
def evidence_folder(**_: Any) -> list[checks.CheckMessage]:
    """Better found out now than by the first paste."""
    options = settings.STORAGES.get("evidence", {}).get("OPTIONS", {})
    folder = Path(options.get("location", ""))
    if "location" not in options:
        return []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    text = f"PEERPATH_EVIDENCE_URL: the folder {folder} cannot be written."
    return [] if writable else [checks.Error(text, hint=_HINT, id="peerpath.E001")]


@checks.register
def database_file(**_: Any) -> list[checks.CheckMessage]:
    """Else all starts, shows what there is, and refuses every sign-in."""
    if connection.vendor != "sqlite" or takes_writes():
        return []
    file = connection.settings_dict["NAME"]
    text = f"PEERPATH_DATA: {file} or its folder cannot be written."
    return [checks.Error(text, hint=_HINT, id="peerpath.E002")]


@checks.register
def authorities(**_: Any) -> list[checks.CheckMessage]:
    """OpenSSL passes over a file it cannot read, and every certificate is refused later."""
    path = os.environ.get("SSL_CERT_FILE", "")
    try:
        if path:
            ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        text = f"SSL_CERT_FILE: no certificates can be read from {path} ({error.strerror})."
        hint = "Name one file of PEM certificates, or leave it out."
        return [checks.Error(text, hint=hint, id="peerpath.E003")]
    return []


def _unknown_settings(names: set[str]) -> Iterator[checks.CheckMessage]:
    for name in sorted(name for name in names if name.startswith("PEERPATH_")):
        near = difflib.get_close_matches(name, environment.FIELDS, 1)
        meant = f"Did you mean {near[0]}?" if near else "docs/deploying.md has all of them."
        yield checks.Warning(f"Nobody reads {name}.", hint=meant, id="peerpath.W001")
