"""django-allauth's second factors, with secrets sealed as SSH keys are and the addresses of this Peerpath."""

import json
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator

from webapp import sealing
from webapp.accounts.passkey_domain import place

_ABOUT = "second factor"  # allauth does not say whose a secret is


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        """Raises sealing.SealError, as `decrypt` does."""
        return ":".join(sealing.keyring().seal(text.encode(), _ABOUT))

    def decrypt(self, encrypted_text: str) -> str:
        key_id, _, sealed = encrypted_text.partition(":")
        return sealing.keyring().open(key_id, sealed, _ABOUT).decode()

    def get_totp_label(self, user: Any) -> str:
        return str(user.username)

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": place(), "name": "Peerpath"}

    def get_public_key_credential_user_entity(self, user: Any) -> dict[str, Any]:
        return {"id": f"peerpath-{user.pk}".encode(), "display_name": user.username, "name": user.username}


def second_factors_reseal(ring: sealing.Keyring) -> int:
    """Seals what second factors have of secrets anew under the ring's first key; how many of them."""
    rows = Authenticator.objects.select_for_update().exclude(type=Authenticator.Type.WEBAUTHN)
    old = [row for row in rows if f'"{ring.primary}:' not in json.dumps(row.data)]
    for row in old:
        for name in {"secret", "migrated_codes"} & row.data.keys():
            row.data[name] = _resealed_value(row.data[name])
        row.save(update_fields=["data"])
    return len(old)


def _resealed_value(value: Any) -> Any:
    """Of a text, or of each in a list."""
    if isinstance(value, list):
        return [_resealed_value(text) for text in value]
    return Adapter().encrypt(Adapter().decrypt(value))
