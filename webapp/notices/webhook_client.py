"""Posts a signed body to a webhook: one connection, to the address that was looked up, no redirect."""

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from standardwebhooks import Webhook

from webapp.notices.addresses import AddressError, Place, place_of, resolve

CONNECT_S, TOTAL_S = 5.0, 10.0
LARGEST_ANSWER_BYTES = 16 * 1024  # more is not read; only the status counts


class PostError(Exception):
    """It did not arrive; the message is for people."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A body and the headers that prove whose it is."""

    body: bytes
    headers: Mapping[str, str]


def signed(body: str, *, secret: str, delivery: str, at: datetime) -> Signed:
    """As https://www.standardwebhooks.com has it: HMAC-SHA256 over "<id>.<seconds>.<body>". at: in UTC."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Peerpath",
        "webhook-id": delivery,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(delivery, at, body),
    }
    return Signed(body.encode(), headers)


def post(url: str, message: Signed) -> int:
    """The status of the answer, 200 to 299. Raises PostError, whose last argument is another status."""
    try:
        place = place_of(url)
        status = _post_to(place, resolve(place), message)
    except AddressError as error:
        raise PostError(str(error), None) from error
    except ssl.SSLCertVerificationError as error:
        why = f"its certificate does not prove that it is {place.host} ({error.verify_message})"
        raise PostError(f"Nothing was sent: {why}.", None) from error
    except (OSError, http.client.HTTPException) as error:
        why = "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
        raise PostError(f"No answer from {place.host}: {why}.", None) from error
    if 300 <= status < 400:
        raise PostError(f"It answered {status}, a redirect; those are not followed.", status)
    if not 200 <= status < 300:
        raise PostError(f"It answered {status}.", status)
    return status


def _post_to(place: Place, address: str, message: Signed) -> int:
    connection = http.client.HTTPConnection(place.host, place.port, timeout=CONNECT_S)
    connection.sock = _connection_to(place, address)
    # An answer that comes byte by byte never lets a single read time out.
    ended = threading.Timer(TOTAL_S, _cut_connection, (connection.sock,))
    ended.daemon = True
    ended.start()
    try:
        headers = {**message.headers, "Host": place.host_header, "Connection": "close"}
        connection.request("POST", place.target, message.body, headers)
        answer = connection.getresponse()
        answer.read(LARGEST_ANSWER_BYTES)
        return answer.status
    finally:
        ended.cancel()
        connection.close()


def _connection_to(place: Place, address: str) -> socket.socket:
    """The name is for TLS and the Host header alone; nothing looks it up once more."""
    plain = socket.create_connection((address, place.port), timeout=CONNECT_S)
    if not place.secure:
        return plain
    try:
        context = ssl.create_default_context()
        return context.wrap_socket(plain, server_hostname=place.host)
    except BaseException:
        plain.close()
        raise


def _cut_connection(connected: socket.socket) -> None:
    with suppress(OSError):  # it ended by itself
        connected.shutdown(socket.SHUT_RDWR)
