"""A security key in software: answers a server's options as a browser with such a key does (WebAuthn level 2,
attestation "none")."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor
from fido2.utils import websafe_encode as text_of

PRESENT, WITH_A_KEY = 0x01, 0x40


@dataclass
class SoftKey:
    """origin: of the page that the browser shows. uses: counted up with each answer."""

    origin: str
    rp_id: str
    uses: int = 1
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    secret: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, options: str) -> str:
        told = self._told("webauthn.create", options)
        about = self._about(PRESENT | WITH_A_KEY) + bytes(16)
        about += len(self.id).to_bytes(2, "big") + self.id + self.public()
        made = cbor.encode({"fmt": "none", "attStmt": {}, "authData": about})
        public = {"transports": ["usb"], "publicKeyAlgorithm": -7, "authenticatorData": text_of(about)}
        return self._answer({"clientDataJSON": text_of(told), "attestationObject": text_of(made), **public})

    def get(self, options: str) -> str:
        self.uses += 1
        told = self._told("webauthn.get", options)
        about = self._about(PRESENT)
        signed = self.secret.sign(about + sha256(told).digest(), ec.ECDSA(SHA256()))
        return self._answer(
            {"clientDataJSON": text_of(told), "authenticatorData": text_of(about), "signature": text_of(signed)}
        )

    def _told(self, kind: str, options: str) -> bytes:
        asked = json.loads(options)["challenge"]
        return json.dumps({"type": kind, "challenge": asked, "origin": self.origin}).encode()

    def _about(self, flags: int) -> bytes:
        return sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.uses.to_bytes(4, "big")

    def public(self) -> bytes:
        numbers = self.secret.public_key().public_numbers()
        x, y = (n.to_bytes(32, "big") for n in (numbers.x, numbers.y))
        return cbor.encode({1: 2, 3: -7, -1: 1, -2: x, -3: y})

    def _answer(self, response: dict[str, Any]) -> str:
        key = text_of(self.id)
        beside = {"authenticatorAttachment": "cross-platform", "clientExtensionResults": {"credProps": {"rk": False}}}
        return json.dumps({"id": key, "rawId": key, "type": "public-key", "response": response, **beside})
