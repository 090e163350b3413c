"""Stored SSH keys: taking one in, opening it for a connection, taking it away, changing what seals it."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import asyncssh
from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone

from webapp import sealing
from webapp.accounts.mfa import second_factors_reseal
from webapp.accounts.models import User
from webapp.records.models import StoredKey

LARGEST_KEY = 64 * 2**10  # characters; an RSA key of 16,384 bits has 13,000


class KeyRefusedError(Exception):
    """This is no key we can use; the message is for people and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A key as a connection needs it."""

    private_key: str = field(repr=False)
    passphrase: str | None = field(repr=False)
    certificate: str = ""


def key_add(
    owner: User, *, name: str, private_key: str, passphrase: str = "", certificate: str = "", shared: bool = False
) -> StoredKey:
    """Stores a key that opens with this passphrase. Raises KeyRefusedError, sealing.SealError."""
    key, certificate = _import_key(private_key, passphrase), certificate.strip()
    if certificate:
        _check_certificate(certificate, key)
    row_id = uuid.uuid4()
    secret = json.dumps({"key": private_key, "passphrase": passphrase}).encode()
    key_id, sealed = sealing.keyring().seal(secret, str(row_id))
    return StoredKey.objects.create(
        id=row_id,
        owner=owner,
        name=name.strip(),
        shared=shared,
        kind=key.get_algorithm(),
        fingerprint=key.get_fingerprint(),
        certificate=certificate,
        sealed=sealed,
        key_id=key_id,
    )


def _import_key(private_key: str, passphrase: str) -> asyncssh.SSHKey:
    if len(private_key) > LARGEST_KEY:
        raise KeyRefusedError("That is larger than any private key.")
    try:
        return asyncssh.import_private_key(private_key, passphrase or None)
    except asyncssh.KeyEncryptionError:
        raise KeyRefusedError("The passphrase does not open this key.") from None
    except (asyncssh.KeyImportError, ValueError):
        why = (
            "If the key is encrypted, give its passphrase too."
            if not passphrase and "PRIVATE KEY" in private_key
            else "Paste the whole file, from its BEGIN line to its END line."
        )
        raise KeyRefusedError(f"This cannot be read as an SSH private key. {why}") from None


def _check_certificate(certificate: str, key: asyncssh.SSHKey) -> None:
    try:
        read = asyncssh.import_certificate(certificate)
    except (asyncssh.KeyImportError, ValueError):
        raise KeyRefusedError("The certificate cannot be read: paste the …-cert.pub file’s one line.") from None
    if read.key.public_data != key.public_data:
        raise KeyRefusedError("The certificate is for another key.")


def key_open(stored: StoredKey) -> Opened:
    """Raises sealing.SealError, also for a key that was removed."""
    if not stored.sealed:
        raise sealing.SealError(f"The key “{stored.name}” was removed. Choose another one.")
    secret = json.loads(sealing.keyring().open(stored.key_id, stored.sealed, str(stored.pk)))
    StoredKey.objects.filter(pk=stored.pk).update(used_at=timezone.now())
    return Opened(secret["key"], secret["passphrase"] or None, stored.certificate)


def keys_visible_to(user: User) -> QuerySet[StoredKey]:
    """One's own and the shared ones; an administrator sees that the others' are there."""
    keys = StoredKey.objects.select_related("owner", "removed_by")
    return keys if user.is_staff else keys.filter(Q(owner=user) | Q(shared=True))


def removable_key(key_id: uuid.UUID, user: User) -> StoredKey:
    """The key of this id, for people who may remove it. Raises Http404, PermissionDenied."""
    key = get_object_or_404(StoredKey, pk=key_id)
    if key.owner_id != user.pk and not user.is_staff:
        raise PermissionDenied("Only whose key it is, or an administrator, removes it.")
    return key


def key_remove(stored: StoredKey, by: User) -> bool:
    """Forgets the secret and keeps the record of its owner; False when it was removed before."""
    return bool(
        StoredKey.objects.filter(pk=stored.pk, removed_at=None).update(
            sealed="", key_id="", certificate="", removed_at=timezone.now(), removed_by=by
        )
    )


def keys_reseal(ring: sealing.Keyring) -> int:
    """Seals every secret anew under the ring's first key: of all tables that have `sealed` and `key_id`, and of
    second factors. Returns how many. Raises SealError."""
    sealed = [m for m in apps.get_models() if {"sealed", "key_id"} <= {f.name for f in m._meta.fields}]
    with transaction.atomic():
        return sum(_reseal_rows(model, ring) for model in sealed) + second_factors_reseal(ring)


def _reseal_rows(model: type[Any], ring: sealing.Keyring) -> int:
    old = model._default_manager.exclude(sealed="").exclude(key_id=ring.primary)
    rows = list(old.select_for_update())
    for row in rows:
        plain = ring.open(row.key_id, row.sealed, str(row.pk))
        row.key_id, row.sealed = ring.seal(plain, str(row.pk))
        row.save(update_fields=["key_id", "sealed"])
    return len(rows)
