"""Runs inside namespaces of its own, as root there: `python -m tests.webapp.notices.rebinding FOLDER`.

A name server on port 53 changes its mind between two questions; one receiver stands at a public address, one
at 127.0.0.1, both with a good certificate. Prints what became of three posts, and how many each receiver got.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import django

PUBLIC, INSIDE, NAME = "93.184.216.34", "127.0.0.1", "rebinding.example"


class NameServer(threading.Thread):
    """answers: the addresses of each answer to come; the last one again and again. asked: how often."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.answers: list[list[str]] = []
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((INSIDE, 53))

    def run(self) -> None:
        while True:
            question, who = self.socket.recvfrom(512)
            end = question.index(b"\0", 12) + 5
            is_a = question[end - 4 : end - 2] == b"\0\1"
            found = self._next() if is_a else []
            head = question[:2] + b"\x81\x80\0\1" + struct.pack(">H", len(found)) + b"\0\0\0\0"
            rows = (b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(one) for one in found)
            self.socket.sendto(head + question[12:end] + b"".join(rows), who)

    def _next(self) -> list[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def receiver(address: str, folder: Path) -> list[str]:
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    from tests.webapp.notices.certificates import Authority

    server = ThreadingHTTPServer((address, 443), Handler)
    authority = Authority(folder, f"ca-{address}")
    with (folder / "all.pem").open("ab") as known:
        known.write(authority.path.read_bytes())
    server.socket = authority.server(NAME).wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return got


def main(folder: Path) -> None:
    (folder / "resolv.conf").write_text(f"nameserver {INSIDE}\n")
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "address", "add", f"{PUBLIC}/32", "dev", "lo"],
        ["mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf"],
    ):
        subprocess.run(command, check=True)
    public, inside = receiver(PUBLIC, folder), receiver(INSIDE, folder)
    os.environ |= {"SSL_CERT_FILE": str(folder / "all.pem"), "PEERPATH_DATA": str(folder)}
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.config.settings"
    django.setup()
    from webapp.notices import webhook_client

    names = NameServer()
    names.start()
    said: list[str | int] = []
    for answers in ([[PUBLIC], [INSIDE]], [[INSIDE]], [[PUBLIC, INSIDE]]):
        names.answers = list(answers)
        message = webhook_client.signed("{}", secret="c2VjcmV0", delivery="d", at=datetime.now(UTC))
        try:
            said.append(webhook_client.post(f"https://{NAME}/hook", message))
        except webhook_client.PostError as error:
            said.append(str(error.args[0]))
    sys.stdout.write(json.dumps({"said": said, "asked": names.asked, "public": public, "inside": inside}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
