"""Where the raw bytes of evidence lie: in the database, or in the storage of PEERPATH_EVIDENCE_URL, there
under the hash of what they are, so that the same bytes are stored once. What is longer than a block lies
in blocks, so that a few lines of a long log are had without the rest.
"""

import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import InvalidStorageError, Storage, storages

from webapp.records.long_text import BLOCK_BYTES, in_blocks

OUT_OF_REACH = (OSError, InvalidStorageError)
STORAGE = "evidence"
_PROBE = "ready"  # the one name there that is no hash
_FAST = 1  # zlib's level: a log of 58 MB becomes 13 in a third of a second


class LostError(Exception):
    """The stored bytes cannot be had, or are not those that were stored; a sentence for people."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Stored bytes. columns: of their evidence; blocks: columns of each of its blocks, in order, when the bytes lie
    there instead."""

    columns: dict[str, Any]
    blocks: tuple[dict[str, Any], ...] = ()


def store(raw: bytes, *, outside: bool = True) -> Blob:
    """Outside the database the bytes are written at once: call it before a transaction, not in one. Bytes that no row
    names do no harm, but no purge finds them: outside=False is for what is rolled back on purpose. Raises LostError
    when they cannot be written."""
    digest = hashlib.sha256(raw).hexdigest()
    columns = {"sha256": digest, "size_bytes": len(raw)}
    if len(raw) > BLOCK_BYTES:
        return Blob(columns, tuple(_line_block(*part, outside) for part in in_blocks(raw)))
    if not (place := _store_outside(raw, digest, outside)):
        return Blob(columns | {"body": raw})
    return Blob(columns | {"place": place})


def _line_block(lines: int, raw: bytes, outside: bool) -> dict[str, Any]:
    digest = hashlib.sha256(raw).hexdigest()
    place = _store_outside(raw, digest, outside)
    where = {"place": place} if place else {"body": zlib.compress(raw, _FAST)}
    return {"sha256": digest, "lines": lines, **where}


def _store_outside(raw: bytes, digest: str, outside: bool) -> str:
    """Where these bytes lie outside now; "" when they belong into the database."""
    if not outside or STORAGE not in settings.STORAGES or not raw:
        return ""
    place = f"{digest[:2]}/{digest}"
    _save_bytes(place, raw, again=False)
    return place


def _save_bytes(place: str, raw: bytes, *, again: bool = True) -> None:
    try:
        if again or not _outside_storage().exists(place):
            _outside_storage().save(place, ContentFile(raw))
    except OUT_OF_REACH as error:
        raise LostError(f"The storage of evidence does not take anything: {error}") from error


def fetch(place: str, sha256: str) -> bytes:
    """What was stored there. Raises LostError."""
    try:
        with _outside_storage().open(place) as file:
            raw: bytes = file.read()
    except OUT_OF_REACH as error:
        raise LostError(f"The storage of evidence does not give {place}: {error}") from error
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise LostError(f"{place} in the storage of evidence is not what was stored there.")
    return raw


def check() -> None:
    """Whether the storage takes a few bytes and gives them back. Raises LostError."""
    raw = b"Peerpath asks from time to time whether this can be written.\n"
    _save_bytes(_PROBE, raw)
    fetch(_PROBE, hashlib.sha256(raw).hexdigest())


def forget(place: str) -> None:
    """Raises LostError where the storage is out of reach."""
    try:
        _outside_storage().delete(place)
    except OUT_OF_REACH as error:
        raise LostError(f"The storage of evidence does not let go of {place}: {error}") from error


def _outside_storage() -> Storage:
    return storages[STORAGE]
