"""The commands against a server, as they are started: `./run remote URL …`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.agents.conftest import make_key
from tests.webapp.api.conftest import ROOT, Done, Served, opened
from webapp.api import client, server
from webapp.api.help import EXAMPLES

pytestmark = pytest.mark.service
MATRIX = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tNS\t\n GPU1\tNS\tX\t\n"


def asked(served: Served, method: str, path: str, **fields: Any) -> Any:
    theirs = server.Server(urlsplit(served.url), served.tokens["carol"])
    return theirs.post(path, **fields) if method == "POST" else theirs.get(path)


def test_a_session_from_opening_to_diagnosis(remote: Callable[..., Done]) -> None:
    session = opened(remote, "From a terminal")
    assert f"{session}  administrator  From a terminal" in remote("sessions").stdout.decode()
    nothing = remote("paste", session, "-", given=b"dear diary\n")
    assert nothing.returncode == server.NOTHING
    pasted = remote("paste", session, "-", "--role", "guest", given=MATRIX)
    assert pasted.returncode == server.DONE, pasted.stderr
    assert "topo_p2p" in pasted.stdout.decode()
    assert remote("diagnose", session).returncode == server.PARTLY  # the diary was not understood
    assert remote("script", session, "host").stdout.startswith(b"#!/bin/sh\n")
    assert b"  1  draft" in remote("decisions").stdout


def test_a_session_is_taken_away_as_a_report_or_whole(remote: Callable[..., Done]) -> None:
    session = opened(remote, "to take away")
    prompt = b"root@gpuvm17:~# nvidia-smi topo -p2p r\n" + MATRIX.partition(b"\n")[2]
    assert remote("paste", session, "-", "--role", "guest", given=prompt).returncode == server.DONE
    assert remote("export", session, "md").stdout.startswith(b"# to take away\n")
    assert json.loads(remote("export", session, "json").stdout)["redacted"] is True
    hidden, whole = (remote("export", session, "bundle", *raw).stdout for raw in ((), ("--raw",)))
    assert hidden.startswith(b"PK")
    assert (b"gpuvm17" in hidden, b"gpuvm17" in whole) == (False, True)


def test_the_diagnosis_is_byte_for_byte_the_one_of_the_command(remote: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_bytes(MATRIX)
    given = [str(tmp_path / "given.txt"), "--role", "guest"]
    session = opened(remote, "one text")
    remote("paste", session, *given)
    from_server = remote("diagnose", session, "--json").stdout
    command = [sys.executable, "manage.py", "diagnose", *given, "--json"]
    here = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout
    assert json.loads(from_server)["facts"]
    assert from_server == here


def test_probes_run_and_their_output_is_followed(served: Served, remote: Callable[..., Done]) -> None:
    session = opened(remote, "here")
    assert b"there are: none" in remote("run", session, "probes").stderr
    asked(served, "POST", f"/sessions/{session}/targets", role="guest", agent="local")
    done = remote("run", session, "probes")
    (run,) = asked(served, "GET", f"/sessions/{session}/runs")["items"]
    assert run["state"] in {"succeeded", "partly"}
    assert done.returncode == (server.DONE if run["state"] == "succeeded" else server.PARTLY)
    output = asked(served, "GET", f"/sessions/{session}/runs/{run['id']}/output")
    assert done.stdout.decode() == output["text"]
    assert len(output["text"]) > 1000
    assert b"guest  local" in remote("targets", session).stdout
    assert b"bench.copy " in remote("benchmarks", session).stdout
    assert remote("runs", session).stdout.split()[:3] == [b"1", run["state"].encode(), b"probes"]
    again = remote("follow", session, "1")
    assert (again.stdout, again.returncode) == (done.stdout, done.returncode)
    once_more = remote("again", session, "1")
    assert once_more.returncode == done.returncode, once_more.stderr
    runs = asked(served, "GET", f"/sessions/{session}/runs")["items"]
    assert [one["names"] for one in runs] == [run["names"]] * 2
    assert once_more.stderr.startswith(b"Run 2: ")
    assert remote("cancel", session, "1").stdout.decode() == f"Run 1: {run['state']}.\n"
    assert remote("cancel", session, "7").returncode == server.USAGE
    refused = remote("run", session, "copy")
    assert refused.returncode == server.USAGE
    assert b"yes" in refused.stderr


def test_keys_are_listed_that_one_may_connect_with(served: Served, remote: Callable[..., Done], tmp_path: Path) -> None:
    make_key(tmp_path / "id")
    private = (tmp_path / "id").read_text()
    names = ("to connect with", "to remove")
    kept, gone = (asked(served, "POST", "/keys", name=name, private_key=private) for name in names)
    server.Server(urlsplit(served.url), served.tokens["carol"]).ask("DELETE", f"/keys/{gone['id']}")
    listed = remote("keys").stdout.decode()
    assert f"{kept['id']}  {kept['fingerprint']}  ssh-ed25519  to connect with\n" in listed
    assert gone["id"] not in listed
    assert kept["id"] not in remote("keys", token=served.tokens["alice"]).stdout.decode()


def test_a_decision_is_proposed_and_waits_for_somebody_else(served: Served, remote: Callable[..., Done]) -> None:
    session = asked(served, "POST", "/sessions/sample", stage="host")["id"]
    theirs = server.Server(urlsplit(served.url), served.tokens["carol"])
    role = json.dumps({"role": "reviewer"}).encode()
    theirs.ask("PUT", f"/sessions/{session}/members/alice", role, "application/json")
    number = remote("draft", session, "gpudirect_clique", "--reason", "as planned").stdout.strip()
    refused = remote("draft", session, "no_such_option", "--reason", "x")
    assert refused.returncode == server.USAGE
    said = remote("propose", session, number.decode()).stdout.decode()
    assert said == f"{number.decode()}  proposed, 1 to approve it\n"
    waits = remote("for-me", token=served.tokens["alice"]).stdout.decode()
    assert f"{session}  judge decision {number.decode()}: " in waits
    judged = {"approves": False, "changes_wanted": True, "reason": "When?"}
    hers = server.Server(urlsplit(served.url), served.tokens["alice"])
    hers.post(f"/sessions/{session}/decisions/{number.decode()}/judge", **judged)
    assert b"changes_wanted  alice: When?" in remote("versions", session, number.decode()).stdout
    whole = json.loads(remote("versions", session, number.decode(), "1").stdout)
    assert whole["content"]["reason"] == "as planned"


def test_what_went_wrong_is_said_by_the_exit_code(served: Served, remote: Callable[..., Done]) -> None:
    session = served.parts["session_id"]
    for code, call in (
        (server.UNREACHABLE, remote("sessions", url="http://127.0.0.1:9")),
        (server.UNREACHABLE, remote("sessions", token="peerpath_abcdefabcdef_x")),
        (server.UNREACHABLE, remote("open", "x", token=served.tokens["reader"])),
        (server.USAGE, remote("diagnose", "00000000-0000-0000-0000-000000000000")),
        (server.USAGE, remote("diagnose", "../../me")),
        (server.USAGE, remote("sessions", url="http://peerpath.example")),
        (server.USAGE, remote("sessions", url="ftp://127.0.0.1")),
        (server.USAGE, remote("paste", session, "/no/such/file")),
        (server.USAGE, remote("nonsense")),
    ):
        assert call.returncode == code, call.stderr
        assert call.stderr
        assert b"Traceback" not in call.stderr


def test_a_token_comes_from_a_file_that_only_its_owner_reads(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEERPATH_TOKEN", raising=False)
    file = tmp_path / "token"
    file.write_text(served.tokens["carol"] + "\n")
    file.chmod(0o644)
    assert client.main(["--token-file", str(file), served.url, "sessions"]) == server.USAGE
    assert "chmod 600" in capsys.readouterr().err
    file.chmod(0o600)
    assert client.main(["--token-file", str(file), served.url, "sessions"]) == server.DONE
    assert client.main([served.url, "sessions"]) == server.USAGE
    assert "PEERPATH_TOKEN" in capsys.readouterr().err


def test_the_examples_of_the_help_page_work_as_they_stand(
    served: Served, remote: Callable[..., Done], tmp_path: Path
) -> None:
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
    changed = asked(served, "GET", f"/sessions/{session}")
    assert changed["own_words"] == "I think it is P2P."
    (given,) = asked(served, "GET", f"/sessions/{session}/evidence")["items"]
    assert given["label"] == "outputs.txt"
    assert (tmp_path / "report.md").read_text().startswith("# ")
