"""`./run remote ADDRESS …`, as it is started, against a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.webapp.api.conftest import ROOT, Done, Served, opened
from webapp.api import remote as client
from webapp.pages.help.api import EXAMPLES

pytestmark = pytest.mark.service
MATRIX = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tNS\t\n GPU1\tNS\tX\t\n"
Call = Callable[..., Done]


def asked(served: Served, path: str, **fields: Any) -> Any:
    return client.Server(served.url, served.tokens["carol"]).json(path, **fields)


def test_a_session_from_opening_to_diagnosis(served: Served, remote: Call, tmp_path: Path) -> None:
    session = opened(remote, "From a terminal")
    assert asked(served, f"/sessions/{session}")["title"] == "From a terminal"
    assert remote("diagnosis", session).returncode == client.NOTHING
    nothing = remote("paste", session, "-", given=b"dear diary\n")
    assert nothing.returncode == client.NOTHING
    assert b"nobody knows lines 1-1" in nothing.stderr
    file = tmp_path / "outputs.txt"
    file.write_bytes(MATRIX)
    pasted = remote("paste", session, str(file), "--role", "guest")
    assert pasted.returncode == client.DONE, pasted.stderr
    assert "topo_p2p" in pasted.stdout.decode()
    labels = {one["label"] for one in asked(served, f"/sessions/{session}/evidence")["items"]}
    assert labels == {"outputs.txt", "a paste"}
    answer = remote("diagnosis", session)
    assert answer.returncode == client.PARTLY  # the diary was not understood
    assert answer.stdout.decode().startswith(asked(served, f"/sessions/{session}/diagnosis")["headline"])


def test_a_session_is_taken_away_as_a_report_or_whole(remote: Call) -> None:
    session = opened(remote, "to take away")
    prompt = b"root@gpuvm17:~# nvidia-smi topo -p2p r\n" + MATRIX.partition(b"\n")[2]
    assert remote("paste", session, "-", "--role", "guest", given=prompt).returncode == client.DONE
    assert remote("export", session, "md").stdout.startswith(b"# to take away\n")
    assert json.loads(remote("export", session, "json").stdout)["redacted"] is True
    hidden, whole = (remote("export", session, "bundle", *raw).stdout for raw in ((), ("--raw",)))
    assert hidden.startswith(b"PK")
    assert (b"gpuvm17" in hidden, b"gpuvm17" in whole) == (False, True)


def test_names_are_replaced_before_an_output_is_stored(served: Served, remote: Call) -> None:
    session = opened(remote, "hidden")
    prompt = b"root@gpuvm17:~# nvidia-smi topo -p2p r\n" + MATRIX.partition(b"\n")[2]
    assert b"Hidden before anything was kept: 1" in remote("paste", session, "-", "--hide", given=prompt).stderr
    (one,) = asked(served, f"/sessions/{session}/evidence")["items"]
    raw = client.Server(served.url, served.tokens["carol"]).ask(f"/sessions/{session}/evidence/{one['name']}/raw")
    assert b"gpuvm17" not in raw


def test_the_diagnosis_is_byte_for_byte_the_one_of_the_command(remote: Call, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_bytes(MATRIX)
    given = [str(tmp_path / "given.txt"), "--role", "guest"]
    session = opened(remote, "one text")
    remote("paste", session, *given)
    from_server = remote("diagnosis", session, "--json").stdout
    command = [sys.executable, "manage.py", "diagnose", *given, "--json"]
    here = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout
    assert json.loads(from_server)["facts"]
    assert from_server == here


def test_probes_run_and_their_output_is_followed(served: Served, remote: Call) -> None:
    session = opened(remote, "here")
    assert b"there are: none" in remote("run", session, "probes").stderr
    asked(served, f"/sessions/{session}/targets", role="guest", agent="local")
    done = remote("run", session, "probes")
    (run,) = asked(served, f"/sessions/{session}/runs")["items"]
    assert run["state"] in {"succeeded", "partly"}
    assert done.returncode == (client.DONE if run["state"] == "succeeded" else client.PARTLY)
    assert done.stderr.startswith(f"Run 1: {run['state']}.".encode())
    output = asked(served, f"/sessions/{session}/runs/{run['id']}/output")
    assert done.stdout.decode() == output["text"]
    assert len(output["text"]) > 1000
    refused = remote("run", session, "bench.copy")
    assert refused.returncode == client.USAGE
    assert b"yes" in refused.stderr
    asked(served, f"/sessions/{session}/targets", role="guest", agent="ssh", host="gpu-2", user="ops", port=2222)
    assert b"guest ssh ops@gpu-2:2222" in remote("run", session, "probes").stderr


def test_what_went_wrong_is_said_by_the_exit_code(served: Served, remote: Call) -> None:
    session = served.parts["session_id"]
    for code, call in (
        (client.UNREACHABLE, remote("new", "x", url="http://127.0.0.1:9")),
        (client.UNREACHABLE, remote("new", "x", token="peerpath_abcdefabcdef_x")),
        (client.UNREACHABLE, remote("new", "x", token=served.tokens["reader"])),
        (client.USAGE, remote("diagnosis", "00000000-0000-0000-0000-000000000000")),
        (client.USAGE, remote("diagnosis", "../../me")),
        (client.USAGE, remote("new", "x", url="http://peerpath.example")),
        (client.USAGE, remote("new", "x", url="HTTP://peerpath.example")),
        (client.USAGE, remote("new", "x", url="ftp://127.0.0.1")),
        (client.USAGE, remote("new", "x", url="https://carol@127.0.0.1")),
        (client.USAGE, remote("new", "x", token="no token")),
        (client.USAGE, remote("paste", session, "/no/such/file")),
        (client.USAGE, remote("nonsense")),
    ):
        assert call.returncode == code, call.stderr
        assert call.stderr
        assert b"Traceback" not in call.stderr


@contextmanager
def answering(status: int, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything so, and who asked it with which token."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", tokens
    finally:
        server.shutdown()
        server.server_close()


def test_the_token_goes_to_the_address_that_was_named_alone(remote: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(200) as (other, theirs), answering(302, Location=f"{other}/api/v1/me") as (first, ours):
        refused = remote("export", "x", "md", url=first)
        assert (refused.returncode, theirs, len(ours)) == (client.FAILED, [], 1)
        assert b"it is no Peerpath" in refused.stderr
        monkeypatch.setenv("http_proxy", other)
        assert client.main([first, "export", "x", "md"]) == client.USAGE  # no token was set
        monkeypatch.setenv("PEERPATH_TOKEN", "peerpath_abcdefabcdef_x")
        assert client.main([first, "export", "x", "md"]) == client.FAILED
        assert (theirs, len(ours)) == ([], 2)


def test_the_one_file_runs_where_nothing_else_of_ours_is(served: Served, tmp_path: Path) -> None:
    file = shutil.copy(client.__file__, tmp_path / "peerpath.py")
    env = {"PATH": os.environ["PATH"], "PEERPATH_TOKEN": served.tokens["carol"]}
    command = [sys.executable, "-I", "-S", file, served.url, "new", "copied"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == client.DONE, done.stderr
    assert asked(served, f"/sessions/{done.stdout.decode().strip()}")["title"] == "copied"


def test_the_examples_of_the_help_page_work_as_they_stand(served: Served, remote: Call, tmp_path: Path) -> None:
    session = opened(remote, "examples")
    (tmp_path / "outputs.txt").write_text("$ uname -r\n6.8.12-9-pve\n")
    env = {
        "PATH": os.environ["PATH"],
        "PEERPATH": served.url,
        "PEERPATH_TOKEN": served.tokens["carol"],
        "SESSION": session,
    }
    for example in EXAMPLES:
        command = ["sh", "-ec", example.command.replace("curl ", "curl --fail-with-body ", 1)]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == 0, (example.title, done.stdout, done.stderr)
    changed = asked(served, f"/sessions/{session}")
    assert changed["own_words"] == "I think it is P2P."
    (given,) = asked(served, f"/sessions/{session}/evidence")["items"]
    assert given["label"] == "outputs.txt"
    assert (tmp_path / "report.md").read_text().startswith("# ")
