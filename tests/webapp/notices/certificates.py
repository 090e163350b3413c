"""A certificate authority of one's own, and certificates by it: files, for an hour. With all that RFC 5280
asks for, because Python looks strictly from 3.13 on."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey
_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """path: its own certificate, which SSL_CERT_FILE may name."""

    def __init__(self, folder: Path, name: str = "Test CA") -> None:
        self.folder, self.name = folder, _named(name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        basic = x509.BasicConstraints(ca=True, path_length=0)
        made = self._begun(self.name, self.key).add_extension(basic, critical=True)
        made = made.add_extension(_SIGNS, critical=True)
        self.path = _kept(folder / f"{name}.pem", made.sign(self.key, hashes.SHA256()))

    def server(self, host: str) -> ssl.SSLContext:
        """What a server that is called `host` (a name or an address) shows."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._begun(_named(host), key).add_extension(_called(host), critical=False)
        certificate = _kept(self.folder / f"{host}.pem", made.sign(self.key, hashes.SHA256()))
        secret = self.folder / f"{host}.key"
        form = serialization.PrivateFormat.PKCS8
        plain = serialization.NoEncryption()
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, secret)
        return context

    def _begun(self, name: x509.Name, key: Key) -> x509.CertificateBuilder:
        now, public = datetime.now(UTC), key.public_key()
        made = x509.CertificateBuilder().subject_name(name).issuer_name(self.name)
        made = made.public_key(public).serial_number(x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(minutes=5))
        own = x509.SubjectKeyIdentifier.from_public_key(public)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = made.not_valid_after(now + timedelta(hours=1)).add_extension(own, critical=False)
        return made.add_extension(by, critical=False)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _called(host: str) -> x509.SubjectAlternativeName:
    try:
        return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
    except ValueError:
        return x509.SubjectAlternativeName([x509.DNSName(host)])


def _kept(path: Path, certificate: x509.Certificate) -> Path:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return path
