"""Where the raw bytes of evidence lie: in its row, or in the storage of PEERPATH_EVIDENCE_URL, there
under the hash of what they are, so that the same bytes are stored once.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

try:  # only where evidence lies in a bucket: requirements-s3.txt
    from botocore.exceptions import BotoCoreError, ClientError
except ImportError:
    OUT_OF_REACH: tuple[type[Exception], ...] = (OSError,)
else:
    OUT_OF_REACH = (OSError, BotoCoreError, ClientError)

STORAGE = "evidence"


class LostError(Exception):
    """The stored bytes cannot be had, or are not those that were stored; a sentence for people."""


def kept(raw: bytes) -> dict[str, Any]:
    """The columns of an evidence of these bytes. Outside the database they are written at once: call
    it before a transaction, not in one. Bytes that no row names in the end do no harm. Raises LostError
    when they cannot be written."""
    digest = hashlib.sha256(raw).hexdigest()
    about = {"sha256": digest, "size_bytes": len(raw)}
    if STORAGE not in settings.STORAGES or not raw:
        return {**about, "body": raw}
    place = f"{digest[:2]}/{digest}"
    try:
        if not _storage().exists(place):
            _storage().save(place, ContentFile(raw))
    except OUT_OF_REACH as error:
        raise LostError(f"The storage of evidence does not take anything: {error}") from error
    return {**about, "body": b"", "place": place}


def fetched(place: str, sha256: str) -> bytes:
    """What was stored there. Raises LostError."""
    try:
        with _storage().open(place) as file:
            raw: bytes = file.read()
    except OUT_OF_REACH as error:
        raise LostError(f"The storage of evidence does not give {place}: {error}") from error
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise LostError(f"{place} in the storage of evidence is not what was stored there.")
    return raw


def forget(place: str) -> None:
    _storage().delete(place)


def _storage() -> Storage:
    return storages[STORAGE]
