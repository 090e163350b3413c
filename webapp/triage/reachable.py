"""Which addresses people other than administrators may have Peerpath connect to.

GPU machines stand in private networks, so those are allowed. The machine that runs Peerpath and its
link-local network (a cloud's metadata service among them) are not.
"""

from __future__ import annotations

import ipaddress
import socket

from django.conf import settings


def may_be_reached(host: str) -> bool:
    """host: a name or address, with a port or without. True for a name that does not resolve: the
    connection will say so."""
    if settings.REACH_LOOPBACK:
        return True
    name, _, port = host.rpartition(":")
    bare = name if name and port.isdecimal() and ":" not in name else host
    try:
        found = socket.getaddrinfo(bare.strip("[]"), None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return True
    return not any(_is_own(str(address[0])) for *_, address in found)


def _is_own(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(
        mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified or mapped.is_multicast
    )
