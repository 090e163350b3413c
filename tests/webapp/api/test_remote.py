"""What a person at a terminal does with a server: each command of the client, asked of a real one."""

from __future__ import annotations

import getpass
import io
import json
import re
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from tests.agents.conftest import Sshd, make_key, ssh_keys, sshd
from tests.webapp.api.conftest import Served
from tests.webapp.review.test_verifying import output_of
from webapp.api import client, server

pytestmark = pytest.mark.service
__all__ = ["ssh_keys", "sshd"]
MATRIX = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tNS\t\n GPU1\tNS\tX\t\n"


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def command(served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """As carol, unless somebody else is named."""

    def call(*arguments: str, given: bytes = b"", who: str = "carol") -> Said:
        monkeypatch.setenv("PEERPATH_TOKEN", served.tokens[who])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        code = client.main([served.url, *arguments])
        found = capsys.readouterr()
        return Said(code, found.out, found.err)

    return call


def done(said: Said) -> str:
    assert said.code == server.DONE, said.err
    return said.out.strip()


def test_two_people_take_a_decision_to_its_end(command: Command) -> None:
    session = done(command("sample", "--stage", "host"))
    assert "Look at the guest" not in done(command("next", session))
    done(command("member", session, "alice", "reviewer"))
    assert "reviewer  alice" in done(command("members", session))
    asked = "option:gpudirect_clique"
    said = done(command("comment", session, "-", "--about", asked, given=b"@alice now?\n"))
    done(command("comment", session, "Yes", "--stance", "resolve", "--reply-to", said, who="alice"))
    assert re.search(rf"{said}  carol .*  {asked}  @alice now", done(command("comments", session)))
    number = done(command("draft", session, "gpudirect_clique", "--reason", "as planned"))
    assert done(command("propose", session, number)).endswith("proposed, 1 to approve it")
    waits = done(command("for-me", "--seen", who="alice"))
    assert f"judge decision {number}" in waits
    assert "carol named you: @alice now?" in waits
    assert "named you" not in done(command("for-me", who="alice"))
    read = command("record", session, number, who="alice")
    assert "as planned" in read.out
    seen = read.err.split()[-1]
    wrong = command("judge", session, number, "approve", "--seen", "0" * 64, who="alice")
    assert wrong.code == server.USAGE
    own = command("judge", session, number, "approve", "--seen", seen)
    assert own.code == server.USAGE
    judged = ("judge", session, number, "approve", "--reason", "go", "--seen", seen)
    assert done(command(*judged, who="alice")) == f"{number}  approved"
    assert f"alice approved decision {number}: go" in done(command("for-me"))
    assert command("apply", session, number, who="alice").code == server.UNREACHABLE
    assert done(command("apply", session, number)) == f"{number}  applied"
    unproven = command("close", session, number, "verified", "--outcome", "it is faster")
    assert unproven.code == server.USAGE
    ended = ("close", session, number, "reverted", "--outcome", "-")
    assert done(command(*ended, given=b"no room on Friday")) == f"{number}  reverted"
    assert "changes_applied" in done(command("log", session))
    done(command("member", session, "alice", "remove"))
    assert command("diagnose", session, who="alice").code == server.USAGE


def test_a_proposal_is_taken_back_and_asked_anew(command: Command) -> None:
    session = done(command("sample", "--stage", "host"))
    number = done(command("draft", session, "engine_profile", "--reason", "-", given=b"to see"))
    anew = ("draft", session, "engine_profile", "--reason", "to look first", "--again", number)
    assert done(command(*anew)) == number
    assert "to look first" in done(command("record", session, number))
    assert command("withdraw", session, number).code == server.USAGE
    instead = ("draft", session, "gpudirect_clique", "--reason", "x", "--instead", number)
    second = done(command(*instead))
    done(command("member", session, "alice", "operator"))
    done(command("propose", session, second))
    assert done(command("withdraw", session, second)) == f"{second}  draft"
    done(command("propose", session, second))
    assert done(command("renew", session, second)).startswith(f"{second}  proposed")
    no = done(command("judge", session, second, "reject", "--reason", "not now", who="alice"))
    assert no == f"{second}  rejected"


def test_what_is_served_is_said_from_the_file_that_the_command_reads(command: Command, tmp_path: Path) -> None:
    session, file = done(command("open", "slow")), tmp_path / "case.toml"
    file.write_text("[model]\nname = 'GLM-5'\nlayers = 78\n[parallelism]\ntp = 8\n")
    told = ("--workload", str(file), "--own-words", "-", "--vmid", "101")
    done(command("describe", session, *told, given=b"It waits."))
    done(command("describe", session, "--title", "GLM-5 is slow"))
    found = json.loads(done(command("get", f"/sessions/{session}")))
    assert found["workload"] == {"model": {"name": "GLM-5", "layers": 78}, "parallelism": {"tp": 8}}
    assert (found["title"], found["own_words"], found["vmid"]) == ("GLM-5 is slow", "It waits.", 101)
    file.write_text("[model]\nlayers = 'many'\n")
    assert command("describe", session, "--workload", str(file)).code == server.USAGE
    file.write_text("{}")
    assert "is no TOML" in command("describe", session, "--workload", str(file)).err
    assert command("use-measured", session, "paste@000000000000").code == server.USAGE


def test_outputs_are_given_found_again_and_explained(command: Command, tmp_path: Path) -> None:
    session = done(command("open", "outputs"))
    pasted = command("paste", session, "-", "--role", "guest", given=MATRIX)
    assert pasted.code == server.DONE
    name = pasted.out.split()[0]
    assert name in done(command("evidence", session))
    assert command("show", session, name).out == MATRIX.decode()
    assert done(command("show", session, name, "--find", "GPU1")).startswith("2  ")
    assert command("show", session, name, "--find", "no such words").code == server.NOTHING
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("6.8.12-9-pve\n")
    given = command("paste", session, str(unknown))
    assert "nobody knows lines 1-1" in given.err
    other = re.search(r"paste@\w+", given.err)
    assert other
    meant = ("assign", session, other[0], "1", "1", "--reader", "guest.kernel_cmdline")
    done(command(*meant))
    assert "no such lines" in command("assign", session, other[0], "7", "9", *meant[-2:]).err
    done(command("assign", session, other[0], "1", "1", "--take-back"))
    read = json.loads(done(command("get", f"/sessions/{session}/evidence/{other[0]}")))
    said = [(one["by"], one["reader"]) for one in read["assigned"]]
    assert said == [("carol", "guest.kernel_cmdline"), ("carol", "")]
    assert read["errors"] == ""
    assert re.match(r"\d+ read, \d+ read differently", done(command("reread", session)))
    assert "topo_p2p_read" in done(command("probes"))


def test_what_would_be_hidden_is_seen_before_and_a_bundle_opens_again(
    served: Served, command: Command, tmp_path: Path
) -> None:
    session = done(command("open", "to take away"))
    prompt = b"root@gpuvm17:~# nvidia-smi topo -p2p r\n" + MATRIX.partition(b"\n")[2]
    command("paste", session, "-", "--role", "guest", given=prompt)
    assert "host name" in done(command("hidden", session, "--all")).replace("_", " ")
    file = tmp_path / "session.zip"
    parts = urlsplit(served.url)
    theirs = server.Server(parts, served.tokens["carol"])
    file.write_bytes(theirs.ask("GET", f"/sessions/{session}/bundle"))
    again = done(command("open-bundle", str(file)))
    assert again != session
    assert again in done(command("sessions"))
    assert command("open-bundle", str(tmp_path / "none.zip")).code == server.USAGE
    facts = json.loads(done(command("facts", again, "guest.p2p")))
    assert facts["guest.p2p_read"]["kind"] == "known"
    assert json.loads(done(command("verify", again)))["epoch"] == 0
    assert "states" in json.loads(done(command("changes", again)))
    assert "guest" in json.loads(done(command("topology", again)))
    assert "P2" in done(command("plan", again))
    assert again in done(command("search", "take", "--kind", "session"))


def test_an_a_b_is_measured_by_hand_from_a_terminal(command: Command) -> None:
    session = done(command("open", "a try"))
    arms = (session, "host_governor", "bench.copy")
    first = done(command("ab", *arms, "--runs", "2"))
    assert [one.split()[:3] for one in first.splitlines()[:2]] == [["1", "arm", "A"], ["2", "arm", "B"]]
    assert "once a decision for it was approved" in first
    so_far = done(command("ab-give", *arms, "1", "-", "--runs", "2", given=output_of(3.4)))
    assert so_far.splitlines()[0].endswith("measured")
    refused = command("ab-give", *arms, "2", "-", "--runs", "2", given=output_of(2.8))
    assert "has to be approved first" in refused.err
    assert "Which machine?" in command("ab-run", *arms, "2", "--runs", "2", "--yes").err


def test_a_link_is_made_seen_and_closed(command: Command) -> None:
    session = done(command("sample", "--stage", "guest"))
    asked = ("--person", "the admin", "--purpose", "-", "--hours", "24")
    address = done(command("link", session, *asked, given=b"One file, please."))
    cookies = urllib.request.HTTPCookieProcessor()
    admins = urllib.request.build_opener(cookies)
    with admins.open(address, timeout=30) as page:
        assert b"One file, please." in page.read()
    link, state, far = done(command("links", session)).split()[:3]
    assert (state, far) == ("open", "opened")
    assert done(command("answers", session)) == ""
    assert done(command("revoke-link", session, link)) == f"{link}  closed  the admin"
    with pytest.raises(HTTPError):
        admins.open(address, timeout=30)
    assert command("accept-link", session, "nonsense").code == server.USAGE


def test_a_machine_is_added_its_key_compared_and_a_few_questions_asked(command: Command, sshd: Sshd) -> None:
    session = done(command("open", "by ssh"))
    place = f"ssh://{getpass.getuser()}@127.0.0.1:{sshd.port}"
    key = str(sshd.folder / "user_key")
    number = done(command("add-target", session, "guest", place, "--identity-file", key))
    shown = command("accept-key", session, number)
    assert shown.code == server.UNREACHABLE
    fingerprint = shown.out.split()[0]
    assert fingerprint == sshd.pin().fingerprint
    assert command("accept-key", session, number, "SHA256:another").code == server.USAGE
    assert command("run", session, "probes").code != server.DONE  # nothing is sent before
    assert "  accepted" in done(command("accept-key", session, number, fingerprint))
    only = ("--only", "guest.kernel_cmdline", "--only", "guest.memory")
    ran = command("run", session, "probes", *only)
    assert ran.code == server.DONE, ran.err
    assert "BOOT_IMAGE" in ran.out or "MemTotal" in ran.out
    assert "guest.kernel_cmdline" in done(command("evidence", session))
    for machine in ("gpu-vm", "ssh://", "ssh://gpu:99999", "http://gpu"):
        assert command("add-target", session, "guest", machine).code == server.USAGE
    assert command("run", session, "bench.copy", "--set", "sizes").code == server.USAGE


def test_a_group_is_added_and_compared(command: Command, sshd: Sshd, tmp_path: Path) -> None:
    session, known = done(command("open", "a group")), tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {(sshd.folder / 'host_key.pub').read_text()}")
    machine = f"{getpass.getuser()}@127.0.0.1:{sshd.port}"
    more = (machine, "--known-hosts", str(known), "--identity-file", str(sshd.folder / "user_key"))
    assert done(command("add-machines", session, *more)).startswith("1 added; the host keys of 1")
    assert re.match(r"1  (queued|running)", done(command("run-all", session)))
    done(command("cancel", session, "1"))
    assert command("machines", session).code == server.DONE
    number, _, _, *where = done(command("targets", session)).split()
    assert where == ["127.0.0.1", str(sshd.port), getpass.getuser()]
    done(command("add-machines", session, "ops@gpu-2:2222"))
    assert "guest ops@gpu-2:2222" in command("run", session, "probes").err
    assert "is not known any more" in done(command("forget-key", session, number))
    assert "not accepted" in command("accept-key", session, number).out


def test_a_key_is_stored_from_a_file_and_its_secret_forgotten(command: Command, tmp_path: Path) -> None:
    make_key(tmp_path / "id")
    key = done(command("store-key", "lab", str(tmp_path / "id")))
    assert f"{key}  SHA256:" in done(command("keys"))
    done(command("remove-key", key))
    assert key not in done(command("keys"))
    broken = command("store-key", "lab", "-", given=b"no key")
    assert (broken.code, broken.out) == (server.USAGE, "")


def test_who_is_told_is_chosen_from_a_terminal(command: Command) -> None:
    session = done(command("open", "told"))
    assert "x  run_finished" in done(command("notices", "run_finished", who="alice"))
    assert "There is no nonsense" in command("notices", "nonsense").err
    hook = ("https://1.1.1.1/hook", "run_finished", "--session", session)
    made, secret = done(command("add-webhook", *hook)).split()
    listed = done(command("webhooks", "--session", session))
    assert listed == f"{made}  run_finished  https://1.1.1.1/hook"
    assert secret not in listed
    done(command("remove-webhook", made, "--session", session))
    assert done(command("webhooks", "--session", session)) == ""
    done(command("quorum", session, "2"))
    assert command("quorum", session, "99").code == server.USAGE
    assert command("stuck").code == server.DONE
    assert command("stuck", who="alice").code == server.UNREACHABLE
    assert command("end-lost", str(UUID(int=0))).code == server.USAGE


def test_people_are_seen_to_by_a_token_that_may(command: Command) -> None:
    assert "may read, write, run, people until" in done(command("me"))
    assert re.fullmatch(r"http://.*/welcome/\S+", done(command("invite", "viewer")))
    done(command("role", "dora", "viewer"))
    assert "viewer         dora" in done(command("people"))
    done(command("shut-out", "dora"))
    assert "dora  no way in" in done(command("people"))
    done(command("role", "dora", "operator"))
    assert command("reset-second-factor", "dora").code == server.USAGE
    assert "has to stay" in command("shut-out", "carol").err
    assert "Nobody here" in command("shut-out", "nobody").err
    refused = command("people", who="alice")
    assert refused.code == server.UNREACHABLE
    assert "alice is none" in refused.err


def test_ones_own_tokens_and_any_other_answer(served: Served, command: Command) -> None:
    handle = served.tokens["reader"].split("_")[1]
    listed = done(command("tokens", who="reader")).splitlines()
    (this,) = [one for one in listed if one.endswith("(this one)")]
    assert this.startswith(f"{handle}  ")
    assert command("revoke-token", "abcdefabcdef", who="reader").code == server.USAGE
    assert json.loads(done(command("get", "/me", who="reader")))["username"] == "carol"
    assert command("get", "me").code == server.USAGE


def test_every_command_has_words_of_its_own() -> None:
    """And no argument that takes the place of where the token goes, or of the token."""
    parser = client.command_line()
    (named,) = (a for a in parser._actions if isinstance(a.choices, dict))
    choices: dict[str, Any] = named.choices  # type: ignore[assignment]
    assert len(choices) > 50
    assert len({one.description for one in choices.values()}) == len(choices)
    shared = {action.dest for action in parser._actions} | {"command"}
    for name, one in choices.items():
        assert not shared & {action.dest for action in one._actions if action.dest != "help"}, name
