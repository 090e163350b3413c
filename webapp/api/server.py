"""One Peerpath, asked over HTTP: what `./run remote` stands on. Standard library only.

The token comes from PEERPATH_TOKEN, or from a file that only its owner can read; never from the command
line, where every process of the machine could see it.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

DONE, FAILED, USAGE, NOTHING, UNREACHABLE, PARTLY = 0, 1, 2, 3, 4, 5
TIMEOUT_S = 120


class StopError(Exception):
    """Ends the command with this exit code and sentence."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


class Server:
    """One Peerpath, asked as the token's owner."""

    def __init__(self, parts: SplitResult, token: str) -> None:
        self.parts, self.token = parts, token

    def ask(self, method: str, path: str, body: bytes = b"", media_type: str = "", if_match: str = "") -> bytes:
        """The answer's body. Raises StopError for every refusal."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if if_match:
            headers["If-Match"] = if_match
        if body:
            headers["Content-Type"] = media_type
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        try:
            status, answer = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise StopError(UNREACHABLE, f"{self.parts.netloc}: {error}") from error
        if status >= 300:
            raise StopError(_code(status), _detail(status, answer))
        return answer

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        host, port = self.parts.hostname or "", self.parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
            if self.parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        )
        try:
            prefix = self.parts.path.rstrip("/")
            connection.request(method, f"{prefix}/api/v1{path}", body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Any:
        return json.loads(self.ask("GET", f"{path}?{urlencode(query)}" if query else path))

    def post(self, path: str, **fields: Any) -> Any:
        return self.send("POST", path, **fields)

    def send(self, method: str, path: str, **fields: Any) -> Any:
        body = json.dumps(fields).encode() if fields else b""
        return self.sent(method, path, body, "application/json")

    def sent(self, method: str, path: str, body: bytes, media_type: str) -> Any:
        return json.loads(self.ask(method, path, body, media_type))

    def change(self, method: str, read: str, path: str, fields: dict[str, Any]) -> Any:
        """What was read at `read` a moment ago is changed, unless somebody else did meanwhile."""
        version = self.get(read)["version"]
        body = json.dumps(fields, default=str).encode()
        return json.loads(self.ask(method, path, body, "application/json", f'"{version}"'))

    def every(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        cursor = ""
        while True:
            following = {"cursor": cursor} if cursor else {}
            found = self.get(path, limit=200, **query, **following)
            if isinstance(found, list):  # a short one, without pages
                yield from found
                return
            yield from found["items"]
            cursor = found["next"]
            if not cursor:
                return


def _code(status: int) -> int:
    if status in {400, 404, 409, 412, 413, 415, 422}:
        return USAGE
    return UNREACHABLE if status in {401, 403, 429, 502, 503, 504} else FAILED


def _detail(status: int, answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {status}, and it is no Peerpath or too old for this."


def address(url: str, *, plain: bool) -> SplitResult:
    """Raises StopError for what is no address, and for one that would show the token on the way, unless
    `plain` allows it."""
    parts: SplitResult = urlsplit(url)
    try:
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise StopError(USAGE, f"{url} is no address: https://peerpath.example")
    if parts.scheme == "http" and not (plain or _is_here(parts.hostname or "")):
        raise StopError(USAGE, "Over http everybody on the way can read the token: use https, or add --plain.")
    return parts


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_from(path: Path | None) -> str:
    """Raises StopError, also for a file that others can read."""
    if path is None:
        text = os.environ.get("PEERPATH_TOKEN", "")
        if not text:
            raise StopError(USAGE, "Set PEERPATH_TOKEN, or name a file: --token-file FILE.")
        return _checked(text)
    try:
        with path.open() as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise StopError(USAGE, f"Others can read {path}: chmod 600 {path}")
            return _checked(file.read(1000))
    except (OSError, UnicodeDecodeError) as error:
        raise StopError(USAGE, f"{path} cannot be read: {error}") from error


def _checked(text: str) -> str:
    text = text.strip()
    if not text.isascii() or not text.isprintable() or not text:
        raise StopError(USAGE, "That is no token; it begins with peerpath_.")
    return text
