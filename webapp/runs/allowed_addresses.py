"""Which addresses people other than administrators may have Peerpath connect to.

GPU machines stand in private networks, so those are allowed. The machine that runs Peerpath and its
link-local network (a cloud's metadata service among them) are not.
"""

import ipaddress
import socket
from contextlib import suppress

from django.conf import settings


def may_be_reached(host: str) -> bool:
    """host: a name or address, with a port or without. True for a name that does not resolve: the
    connection will say so."""
    if settings.REACH_LOOPBACK:
        return True
    name, _, port = host.rpartition(":")
    has_port = name and port.isdecimal() and (":" not in name or name.endswith("]"))
    bare = name if has_port else host
    try:
        resolved = socket.getaddrinfo(bare.strip("[]"), None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return True
    return not any(_is_own(str(address[0])) for *_, address in resolved)


def _is_own(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None) or address
    if mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified or mapped.is_multicast:
        return True
    return _is_from(mapped)


def _is_from(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether it is one of this machine's own: what goes there comes from there. Nothing is sent."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((str(address), 9))
        return str(way.getsockname()[0]) == str(address)
    return False
