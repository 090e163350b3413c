"""Second factors and passkeys as Peerpath stored them before django-allauth did: nobody enrols anew.

The tables are described here, as they were, so that this needs no migration of their time.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Any

from allauth.mfa.models import Authenticator
from django.apps.registry import Apps
from django.db import models, transaction
from fido2 import cbor
from fido2.cose import CoseKey
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import Aaguid, AttestationObject, AttestedCredentialData, AuthenticatorData

from webapp import sealing
from webapp.accounts.mfa import Adapter
from webapp.accounts.passkey_domain import place
from webapp.accounts.second_factor import hashes_of_codes

_OLD_TABLES = Apps()


class OldFactor(models.Model):
    objects: models.Manager[OldFactor] = models.Manager()
    id = models.UUIDField(primary_key=True)
    user_id = models.BigIntegerField()
    sealed = models.TextField()
    key_id = models.CharField(max_length=20)
    made_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        apps, app_label, db_table = _OLD_TABLES, "accounts", "accounts_authenticator"


class OldPasskey(models.Model):
    objects: models.Manager[OldPasskey] = models.Manager()
    user_id = models.BigIntegerField()
    name = models.CharField(max_length=60)
    credential = models.CharField(max_length=1400)
    public_key = models.BinaryField()
    uses = models.PositiveBigIntegerField()
    made_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        apps, app_label, db_table = _OLD_TABLES, "accounts", "accounts_passkey"


class OldRecoveryCode(models.Model):
    objects: models.Manager[OldRecoveryCode] = models.Manager()
    user_id = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        apps, app_label, db_table = _OLD_TABLES, "accounts", "accounts_recoverycode"


@transaction.atomic
def carry_over() -> int:
    """Copies the old tables' rows to allauth's; returns for how many people. A person who never gave a first code
    begins anew.

    Raises sealing.SealError.
    """
    factors = list(OldFactor.objects.exclude(confirmed_at=None))
    for factor in factors:
        codes = OldRecoveryCode.objects.filter(user_id=factor.user_id, used_at=None).values_list("sha256", flat=True)
        Authenticator.objects.bulk_create([_totp(factor), _recovery_codes(factor, list(codes))])
        for key in OldPasskey.objects.filter(user_id=factor.user_id).order_by("pk"):
            _passkey(key).save()
    return len(factors)


def _totp(old: OldFactor) -> Authenticator:
    secret = sealing.keyring().open(old.key_id, old.sealed, str(old.pk))
    data = {"secret": Adapter().encrypt(base64.b32encode(secret).decode())}
    return Authenticator(user_id=old.user_id, type=Authenticator.Type.TOTP, data=data, created_at=old.made_at)


def _recovery_codes(old: OldFactor, hashes: list[str]) -> Authenticator:
    data = hashes_of_codes(hashes)
    return Authenticator(user_id=old.user_id, type=Authenticator.Type.RECOVERY_CODES, data=data)


def _passkey(old: OldPasskey) -> Authenticator:
    data = {"name": old.name, "credential": _registration(old), "uses": old.uses}
    times = {"created_at": old.made_at, "last_used_at": old.used_at}
    return Authenticator(user_id=old.user_id, type=Authenticator.Type.WEBAUTHN, data=data, **times)


def _registration(old: OldPasskey) -> dict[str, Any]:
    """What a browser sent when the passkey was added, as far as it is read again: its id and public key."""
    numbers: Any = cbor.decode(bytes(old.public_key))
    credential = AttestedCredentialData.create(Aaguid.NONE, websafe_decode(old.credential), CoseKey.parse(numbers))
    flags = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.AT
    about = AuthenticatorData.create(sha256(place().encode()).digest(), flags, old.uses, bytes(credential))
    response = {
        "clientDataJSON": websafe_encode(b'{"type":"webauthn.create","challenge":"","origin":""}'),
        "attestationObject": websafe_encode(bytes(AttestationObject.create("none", about, {}))),
    }
    return {"id": old.credential, "rawId": old.credential, "type": "public-key", "response": response}
