"""Files on their way to a server. Standard library only."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from webapp.api.server import USAGE, StopError


def read(path: Path) -> bytes:
    """A file, or standard input for "-". Raises StopError."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise StopError(USAGE, f"{path}: {error.strerror}") from error


def text(given: str) -> str:
    """What was given, or standard input for "-"."""
    return read(Path("-")).decode(errors="replace") if given == "-" else given


def form(field: str, name: str, raw: bytes) -> tuple[bytes, str]:
    """A multipart/form-data body with one file (RFC 7578) and its media type."""
    mark = f"peerpath-{uuid.uuid4().hex}"
    quoted = "".join("_" if c in '"\\\r\n' else c for c in name)
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{quoted}"\r\n\r\n'
    body = b"".join([head.encode(errors="replace"), raw, f"\r\n--{mark}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={mark}"
