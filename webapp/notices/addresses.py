"""Where a webhook may lead: a public address, looked up once, and connected to as it was looked up."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

# IANA, Internet Protocol Version 6 Address Space, 2019.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# IANA, IPv4 Special-Purpose Address Registry, 2024: for protocols, of which Python knew a part alone before
# 3.11.10 and 3.12.4; one cloud's metadata are at 192.0.0.192.
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")


class AddressError(Exception):
    """Why nothing is sent there, in words for the page."""


@dataclass(frozen=True, slots=True)
class Place:
    """Taken apart; target: path and query, as the request names it."""

    secure: bool
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.secure else 80
        return host if self.port == usual else f"{host}:{self.port}"


def place_of(url: str) -> Place:
    """Raises AddressError. https only, save where private addresses are allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError("That is no address.") from error
    schemes = {"https", "http"} if settings.WEBHOOK_PRIVATE else {"https"}
    if parts.scheme not in schemes or not parts.hostname:
        raise AddressError(f"It has to begin with {' or '.join(sorted(schemes))}:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise AddressError("A name or password in the address is not sent; leave it out.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise AddressError("Write it in ASCII, without blanks.")
    secure = parts.scheme == "https"
    return Place(secure, parts.hostname, port or (443 if secure else 80), target)


def resolve(place: Place) -> str:
    """One address of the host, to connect to. Raises AddressError when there is none, or when any of them is not
    public: a name with two meanings is not trusted."""
    try:
        resolved = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise AddressError(f"{place.host} has no address.") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in resolved))
    if not settings.WEBHOOK_PRIVATE and not all(map(is_public, addresses)):
        raise AddressError(f"{place.host} is not a public address; PEERPATH_WEBHOOK_PRIVATE=1 allows such.")
    return addresses[0]


def is_public(text: str) -> bool:
    """Also for IPv4 addresses inside IPv6 ones (mapped, 6to4, Teredo, NAT64). Of other IPv6 addresses only IANA's
    global unicast ranges count: some outside them lead inside (64:ff9b:1::, ::127.0.0.1, fec0::)."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded_ipv4(address) if isinstance(address, ipaddress.IPv6Address) else None
    meant = inner or address
    if isinstance(meant, ipaddress.IPv6Address) and meant not in _GLOBAL_UNICAST:
        return False
    return meant.is_global and not meant.is_multicast and meant not in _PROTOCOLS


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    nat64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in nat64 else None
