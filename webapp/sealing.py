"""Secrets at rest: sealed by AES-256-GCM under a key that has an id, so that keys can be changed.

The keys come from PEERPATH_SECRET_KEYS ("id:base64,id:base64", the first one seals, the others still
open), else from the file `credential-keys` in the data folder, made on first use (mode 0600). The file
is read at every use: another process may have changed the keys meanwhile.
"""

import base64
import binascii
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

KEY_BYTES, NONCE_BYTES = 32, 12  # AES-256; the nonce length of NIST SP 800-38D
_ID = re.compile(r"[0-9A-Za-z_-]{1,20}")


class SealError(Exception):
    """A secret cannot be sealed or opened; the message is for people and repeats no secret."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """ids and keys in order; the first one seals."""

    keys: tuple[tuple[str, bytes], ...]

    @property
    def primary(self) -> str:
        return self.keys[0][0]

    def seal(self, plain: bytes, about: str) -> tuple[str, str]:
        """(key id, text). about: whose secret it is; the text opens for no other."""
        key_id, key = self.keys[0]
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + AESGCM(key).encrypt(nonce, plain, _associated_data(key_id, about))
        return key_id, base64.b64encode(sealed).decode("ascii")

    def open(self, key_id: str, text: str, about: str) -> bytes:
        """Raises SealError when the key is not there, or the text was altered or is another's."""
        key = dict(self.keys).get(key_id)
        if key is None:
            raise SealError(
                f"The secret was sealed with the key {key_id!r}, which is not among the keys here. "
                f"Put it back into PEERPATH_SECRET_KEYS or the file credential-keys."
            )
        raw = base64.b64decode(text)
        try:
            return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _associated_data(key_id, about))
        except InvalidTag:
            raise SealError("The stored secret was altered, or its key is another one.") from None


def _associated_data(key_id: str, about: str) -> bytes:
    return f"peerpath/1 {key_id} {about}".encode()


def keyring() -> Keyring:
    """The keys as they are now. Raises SealError."""
    return parsed(settings.SECRET_KEYS or _stored_keys(key_file()))


def key_file() -> Path:
    return Path(settings.DATA_DIR) / "credential-keys"


def parsed(text: str) -> Keyring:
    """Keys separated by commas or lines. Raises SealError; no key is repeated in its message."""
    keys = tuple(_parsed_key(item.strip()) for item in re.split(r"[,\n]", text) if item.strip())
    if not keys:
        raise SealError("There is no key for secrets: PEERPATH_SECRET_KEYS or the file is empty.")
    if len({key_id for key_id, _ in keys}) != len(keys):
        raise SealError("Two keys for secrets have the same id.")
    return Keyring(keys)


def _parsed_key(item: str) -> tuple[str, bytes]:
    key_id, _, encoded = item.partition(":")
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if not _ID.fullmatch(key_id) or len(key) != KEY_BYTES:
        raise SealError("A key for secrets is not written as id:base64 of 32 bytes; ./run rotate-keys --new makes one.")
    return key_id, key


def new_key() -> str:
    """A line "id:base64" with a fresh key."""
    return f"{secrets.token_hex(4)}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"


def _stored_keys(path: Path) -> str:
    try:
        if not path.exists():
            _make_file(path, f"{new_key()}\n")
        return path.read_text()
    except OSError as error:
        raise SealError(f"{path} cannot be used: {error.strerror}.") from error


def _make_file(path: Path, text: str) -> None:
    made = _written_file(path, text)
    try:
        os.link(made, path)  # the first of two processes wins, the other reads its key
    except FileExistsError:
        pass
    finally:
        made.unlink()


def replace_keys(lines: list[str]) -> None:
    """Writes these keys to the file in one step."""
    _written_file(key_file(), "".join(f"{line}\n" for line in lines)).replace(key_file())


def _written_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return made
