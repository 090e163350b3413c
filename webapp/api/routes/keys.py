"""Stored SSH keys: who has which, storing one, removing one. A key never comes back."""

from datetime import datetime
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from webapp.accounts.models import User
from webapp.api.auth import READ, RUN
from webapp.api.declared import filled
from webapp.api.idempotency import remembered
from webapp.api.paging import Asked, Page, page
from webapp.api.problems import RefusedError, documented
from webapp.api.request_context import Sent, user_of
from webapp.records.access import refuse_unless_may_store_keys
from webapp.records.models import StoredKey
from webapp.records.stored_keys import LARGEST_KEY, KeyRefusedError, key_add, key_remove, keys_visible_to, removable_key
from webapp.sealing import SealError

router = Router(tags=["keys"])
SEALING = {"responses": {503: documented("It cannot be sealed now.")}}


class KeptKey(BaseModel):
    """id: what `stored_key` of a machine names. usable: you may connect with it. with_certificate: it is
    used with one. used_at: when it was opened for a connection, null for never. removed_at: when its secret
    was forgotten; the row stays to say who had which key."""

    id: UUID
    name: str
    kind: str
    fingerprint: str
    owner: str
    shared: bool
    with_certificate: bool
    usable: bool
    created_at: datetime
    used_at: datetime | None
    removed_at: datetime | None


class NewKey(Sent):
    """private_key: the whole file, from BEGIN to END. passphrase: if it has one; it is stored with the key.
    certificate: the one line of OpenSSH's …-cert.pub. shared: everyone here may connect with it; for
    administrators."""

    name: str = Field(min_length=1, max_length=80, pattern=r"\S")
    private_key: str = Field(min_length=1, max_length=LARGEST_KEY)
    passphrase: str = Field("", max_length=1000)
    certificate: str = Field("", max_length=LARGEST_KEY)
    shared: bool = False


def _key(key: StoredKey, user: User) -> KeptKey:
    return filled(
        KeptKey,
        key,
        owner=key.owner.username,
        with_certificate=bool(key.certificate),
        usable=key.removed_at is None and (key.shared or key.owner_id == user.pk),
    )


@router.get("/keys", auth=READ, response=Page[KeptKey])
def list_keys(request: HttpRequest, query: Query[Asked]) -> Page[KeptKey]:
    """Your stored SSH keys and the shared ones, the newest first; an administrator sees that others' are
    there."""
    user = user_of(request)
    refuse_unless_may_store_keys(user)
    records, following = page(keys_visible_to(user), query, by="created_at")
    return Page[KeptKey](items=[_key(one, user) for one in records], next=following)


@router.post("/keys", auth=RUN, response={201: KeptKey})
@remembered(also=SEALING)
def store_key(request: HttpRequest, sent: NewKey) -> Status[KeptKey]:
    """Stores a private SSH key, encrypted. It never comes back."""
    user = user_of(request)
    refuse_unless_may_store_keys(user)
    if sent.shared and not user.is_staff:
        raise PermissionDenied("Only an administrator shares a key with everyone here.")
    try:
        return Status(201, _key(key_add(user, **sent.model_dump()), user))
    except KeyRefusedError as error:
        raise RefusedError(422, f"private_key: {error}") from error
    except SealError as error:
        raise RefusedError(503, str(error)) from error


@router.delete("/keys/{uuid:key_id}", auth=RUN, response={204: None})
def remove_key(request: HttpRequest, key_id: UUID) -> Status[None]:
    """Forgets a key's secret, once and for all. Machines that used it need another one."""
    user = user_of(request)
    key_remove(removable_key(key_id, user), user)
    return Status(204, None)
