"""Clients that send a byte now and then hold no thread: the others are served meanwhile."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import port_for
import pytest

from tests.worker.conftest import wait_until
from worker.web_worker import whole_bytes

ROOT = Path(__file__).resolve().parents[2]
HEAD = b"GET /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
FORM = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\na"
MANY = 60  # several times as many as there are threads


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    number = port_for.select_random()
    env = {**os.environ, "PEERPATH_DATA": str(tmp_path_factory.mktemp("slow"))}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(number)],
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: served(number), 60)
        yield number
    finally:
        process.terminate()
        process.wait(30)


def served(port: int, timeout: float = 10) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", "/sign-in")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.service
@pytest.mark.parametrize(
    "begin",
    [HEAD, FORM % 20_000, FORM % 60_000],
    ids=["a head", "a small form", "more than strangers may send"],
)
def test_sixty_slow_clients_keep_nobody_from_the_pages(port: int, begin: bytes) -> None:
    with ExitStack() as open_ones:
        slow = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(MANY)
        ]
        for client in slow:
            client.sendall(begin)
        time.sleep(0.5)
        assert served(port)


@pytest.mark.service
def test_what_comes_in_pieces_is_answered_when_it_is_whole(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for piece in (HEAD[:20], HEAD[20:], b"x\r\n", b"\r\n"):
            client.sendall(piece)
            time.sleep(0.1)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.sendall(FORM % 3)  # on the same connection
        time.sleep(0.1)
        client.sendall(b"bc")
        rest = b""
        while b"HTTP/1.1 403" not in rest:  # without the form's token
            piece = client.recv(65536)
            assert piece
            rest += piece


@pytest.mark.service
def test_who_goes_away_half_way_is_forgotten_at_once(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(HEAD)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b""


@pytest.mark.parametrize(
    ("seen", "needed"),
    [
        (b"", 1),
        (b"GET / HTTP/1.1\r\n", 17),
        (b"GET / HTTP/1.1\r\n\r\n", 18),
        (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab", 43),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", 42),  # read, or refused, by a thread
        (b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", 60),
        (b"x" * 20_000, 20_000),  # no head at all: the parser refuses it
    ],
)
def test_how_much_has_to_be_there(seen: bytes, needed: int) -> None:
    assert whole_bytes(seen) == needed
