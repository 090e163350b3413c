"""Stored SSH keys: sealed, shown to nobody, used by whose they are, and sealed anew."""

from __future__ import annotations

import base64
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from agents.ssh import SshAgent
from tests.agents.conftest import make_key
from tests.pages import html_of
from webapp import sealing
from webapp.accounts.models import User
from webapp.pages.forms.target import SshTargetForm
from webapp.records import stored_keys
from webapp.records.models import DiagnosisSession, StoredKey, Target
from webapp.records.sessions import member_add
from webapp.runs.allowed_addresses import may_be_reached
from webapp.runs.credentials import RefusedError, agent_for, may_connect, ssh_spec

pytestmark = pytest.mark.django_db
PASSPHRASE = "correct horse battery"


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.SECRET_KEYS = ""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("keys") / "id"
    make_key(path)
    return path.read_text()


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("keys") / "id"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", PASSPHRASE, "-f", str(path)]
    subprocess.run(command, check=True)
    return path.read_text()


def gpu_vm(session: DiagnosisSession, key: StoredKey, **more: Any) -> Target:
    return Target.objects.create(
        session=session,
        role="guest",
        agent="ssh",
        host="192.0.2.7",
        user="ops",
        stored_key=key,
        created_by=session.owner,
        **more,
    )


def test_a_key_is_sealed_and_opens_as_it_was(alice: User, encrypted: str) -> None:
    stored = stored_keys.key_add(alice, name="a", private_key=encrypted, passphrase=PASSPHRASE)
    row = StoredKey.objects.values().get(pk=stored.pk)
    body = "".join(encrypted.splitlines()[1:-1])
    for secret in (PASSPHRASE, encrypted, body, body[:60]):
        assert secret not in str(row)
        assert base64.b64encode(secret.encode()).decode()[:40] not in str(row)
    opened = stored_keys.key_open(StoredKey.objects.get())
    assert (opened.private_key, opened.passphrase) == (encrypted, PASSPHRASE)
    assert PASSPHRASE not in repr(opened)
    assert StoredKey.objects.get().used_at


def test_the_key_file_is_for_this_account_alone(settings: Any) -> None:
    first = sealing.keyring()
    assert stat.S_IMODE(sealing.key_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(sealing.key_file().parent.stat().st_mode) == 0o700
    assert sealing.keyring() == first


def test_a_sealed_secret_opens_for_no_other_row_and_not_after_a_change(alice: User, private: str) -> None:
    one = stored_keys.key_add(alice, name="one", private_key=private)
    other = stored_keys.key_add(alice, name="other", private_key=private)
    assert one.sealed != other.sealed
    StoredKey.objects.filter(pk=other.pk).update(sealed=one.sealed)
    with pytest.raises(sealing.SealError, match="altered"):
        stored_keys.key_open(StoredKey.objects.get(pk=other.pk))
    raw = bytearray(base64.b64decode(one.sealed))
    raw[-1] ^= 1
    StoredKey.objects.filter(pk=one.pk).update(sealed=base64.b64encode(bytes(raw)).decode())
    with pytest.raises(sealing.SealError, match="altered"):
        stored_keys.key_open(StoredKey.objects.get(pk=one.pk))


@pytest.mark.parametrize("text", ["", "x", "a:notbase64!", "a:" + base64.b64encode(b"short").decode()])
def test_keys_that_are_none_are_refused_without_repeating_them(settings: Any, text: str) -> None:
    settings.SECRET_KEYS = text or ","
    with pytest.raises(sealing.SealError) as caught:
        sealing.keyring()
    assert not text or text.partition(":")[2] not in str(caught.value) or ":" not in text


def test_rotating_the_key_file(alice: User, private: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored = stored_keys.key_add(alice, name="a", private_key=private)
    before = sealing.keyring()
    call_command("rotate_keys")
    assert "1 secrets are sealed anew" in capsys.readouterr().out
    after = sealing.keyring()
    assert len(after.keys) == 1
    assert after.primary != before.primary
    now = StoredKey.objects.get(pk=stored.pk)
    assert (now.key_id, stored_keys.key_open(now).private_key) == (after.primary, private)
    with pytest.raises(sealing.SealError):
        after.open(stored.key_id, stored.sealed, str(stored.pk))


def test_rotating_keys_of_the_environment(
    alice: User, private: str, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = sealing.new_key(), sealing.new_key()
    settings.SECRET_KEYS = old
    stored = stored_keys.key_add(alice, name="a", private_key=private)
    settings.SECRET_KEYS = f"{new},{old}"
    assert stored_keys.key_open(stored).private_key == private, "both open while both are there"
    call_command("rotate_keys")
    assert f"Not used any more: {old.partition(':')[0]}" in capsys.readouterr().out
    settings.SECRET_KEYS = new
    assert stored_keys.key_open(StoredKey.objects.get()).private_key == private
    settings.SECRET_KEYS = sealing.new_key()
    with pytest.raises(CommandError, match="not among the keys here"):
        call_command("rotate_keys")
    call_command("rotate_keys", "--new")
    assert len(sealing.parsed(capsys.readouterr().out).keys) == 1


@pytest.mark.parametrize("given", ["", "nonsense", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_refused(alice: User, given: str) -> None:
    with pytest.raises(stored_keys.KeyRefusedError):
        stored_keys.key_add(alice, name="a", private_key=given)


def test_a_wrong_passphrase_and_a_foreign_certificate_are_refused(
    alice: User, encrypted: str, private: str, tmp_path: Path
) -> None:
    for wrong in ("", "wrong"):
        with pytest.raises(stored_keys.KeyRefusedError, match="passphrase"):
            stored_keys.key_add(alice, name="a", private_key=encrypted, passphrase=wrong)
    make_key(tmp_path / "other")
    sign = ["ssh-keygen", "-q", "-s", f"{tmp_path}/other", "-I", "x", "-n", "ops"]
    subprocess.run([*sign, f"{tmp_path}/other.pub"], check=True)
    certificate = (tmp_path / "other-cert.pub").read_text()
    with pytest.raises(stored_keys.KeyRefusedError, match="another key"):
        stored_keys.key_add(alice, name="a", private_key=private, certificate=certificate)


def test_who_may_connect_with_which_key(
    session_of_alice: DiagnosisSession, alice: User, bob: User, private: str
) -> None:
    assert not may_connect(bob)
    target = gpu_vm(session_of_alice, stored_keys.key_add(alice, name="hers", private_key=private))
    assert isinstance(agent_for(target, alice), SshAgent)
    with pytest.raises(RefusedError, match="bob may not reach machines of this session"):
        agent_for(target, bob)
    member_add(session_of_alice, user=bob, added_by=alice)
    with pytest.raises(RefusedError, match="alice's"):
        agent_for(target, bob)
    StoredKey.objects.update(shared=True)
    target = Target.objects.get()
    assert isinstance(agent_for(target, bob), SshAgent)
    assert may_connect(bob)
    target.stored_key = None
    with pytest.raises(RefusedError, match="only an administrator"):
        agent_for(target, alice)


def test_a_stored_key_is_used_alone_and_on_the_whole_way(
    session_of_alice: DiagnosisSession, alice: User, private: str
) -> None:
    key = stored_keys.key_add(alice, name="hers", private_key=private)
    spec = ssh_spec(gpu_vm(session_of_alice, key, jump="a@one:2222,b@two"))
    hops = [spec, spec.jump, spec.jump and spec.jump.jump]
    assert [(h and h.host, h and h.port, h and h.user) for h in hops] == [
        ("192.0.2.7", 22, "ops"),
        ("two", 22, "b"),
        ("one", 2222, "a"),
    ]
    for hop in hops:
        assert hop
        assert (hop.private_keys, hop.own_keys, hop.identities, hop.read_config) == ((private,), False, (), False)


def test_a_removed_key_opens_nothing_and_leaves_its_trace(
    session_of_alice: DiagnosisSession, alice: User, private: str
) -> None:
    stored = stored_keys.key_add(alice, name="hers", private_key=private)
    target = gpu_vm(session_of_alice, stored)
    assert stored_keys.key_remove(stored, alice)
    assert not stored_keys.key_remove(stored, alice)
    row = StoredKey.objects.get()
    assert (row.sealed, row.fingerprint, row.removed_by) == ("", stored.fingerprint, alice)
    target.refresh_from_db()
    with pytest.raises(RefusedError, match="was removed"):
        ssh_spec(target)
    assert not StoredKey.objects.usable_by(alice).exists()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "169.254.169.254", "0.0.0.0", "::ffff:127.0.0.1"]
)
def test_this_machine_itself_is_not_reached_for_members(host: str) -> None:
    assert not may_be_reached(host)


@pytest.mark.parametrize("host", ["10.1.2.3", "192.168.7.7", "192.0.2.1", "fd00::7"])
def test_private_networks_are_reached(host: str) -> None:
    assert may_be_reached(host)


@pytest.mark.parametrize(("family", "far"), [("AF_INET", "1.1.1.1"), ("AF_INET6", "2606:4700::1")])
def test_a_member_does_not_reach_this_machine_by_its_name_in_the_network(family: str, far: str) -> None:
    with socket.socket(getattr(socket, family), socket.SOCK_DGRAM) as way:
        try:
            way.connect((far, 9))  # sends nothing
        except OSError:
            pytest.skip("this machine is in no such network")
        own = str(way.getsockname()[0])
    assert not may_be_reached(own)
    assert not may_be_reached(f"[{own}]:22" if ":" in own else f"{own}:22")


def test_the_first_machine_on_the_way_counts(
    session_of_alice: DiagnosisSession, alice: User, bob: User, private: str
) -> None:
    key = stored_keys.key_add(alice, name="hers", private_key=private)
    with pytest.raises(RefusedError, match="machine that runs Peerpath"):
        agent_for(gpu_vm(session_of_alice, key, jump="a@127.0.0.1:22"), alice)


def test_the_form_offers_what_a_person_may_use(alice: User, bob: User, private: str) -> None:
    stored_keys.key_add(alice, name="hers", private_key=private)
    his = SshTargetForm({"host": "vm", "port": "22", "user": "ops"}, user=bob)
    assert "identity_file" not in his.fields
    assert not his.is_valid()
    stolen = SshTargetForm(
        {"host": "vm", "port": "22", "user": "ops", "stored_key": str(StoredKey.objects.get().pk)}, user=bob
    )
    assert "stored_key" in stolen.errors
    way = {"host": "vm", "port": "22", "user": "ops", "jump": "a@one:2222, b@two"}
    hers = SshTargetForm(way | {"stored_key": str(StoredKey.objects.get().pk)}, user=alice)
    assert hers.is_valid(), hers.errors
    assert hers.values()["jump"] == "a@one:2222,b@two"


def test_the_page_takes_a_key_and_never_gives_it_back(client: Client, alice: User, bob: User, encrypted: str) -> None:
    client.force_login(alice)
    typed = {"name": "lab", "private_key": encrypted, "passphrase": "wrong-one", "shared": "on"}
    refused = client.post("/keys", typed)
    assert refused.status_code == 422
    assert "does not open this key" in html_of(refused)
    stored = client.post("/keys", typed | {"passphrase": PASSPHRASE}, follow=True)
    key = StoredKey.objects.get()
    assert key.fingerprint in html_of(stored)
    assert not key.shared, "only an administrator shares"
    body = encrypted.splitlines()[2]
    for answer in (refused, stored, client.get("/keys")):
        text = html_of(answer)
        assert not [s for s in (body, PASSPHRASE, "wrong-one", key.sealed) if s in text]
    client.force_login(bob)
    assert key.fingerprint not in html_of(client.get("/keys"))
    assert client.post(f"/keys/{key.pk}/remove").status_code == 403
    client.force_login(alice)
    assert client.post(f"/keys/{key.pk}/remove").status_code == 302
    assert "removed by alice" not in html_of(client.get("/keys"))
    client.post(f"/keys/{key.pk}/remove", {"confirm": key.name})
    assert "removed by alice" in html_of(client.get("/keys"))


def test_keys_are_for_operators(client: Client, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(role="viewer")
    client.force_login(bob)
    assert client.get("/keys").status_code == 403


def test_nothing_is_left_of_a_half_written_key_file() -> None:
    sealing.keyring()
    assert [path.name for path in sealing.key_file().parent.iterdir()] == ["credential-keys"]
