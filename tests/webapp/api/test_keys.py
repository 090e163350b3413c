"""Stored SSH keys by a program: what a page tells, and never the secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.agents.conftest import make_key
from tests.pages import html_of
from tests.webapp.api.conftest import Program
from webapp.accounts.models import User
from webapp.api.models import Remembered
from webapp.records.models import DiagnosisSession, StoredKey

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.SECRET_KEYS = ""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("keys") / "id"
    make_key(path)
    return path.read_text()


def lines_of(private: str) -> list[str]:
    """Of its middle, each of which is of this key alone."""
    return private.splitlines()[2:-2]


def test_a_key_is_stored_named_by_a_machine_and_removed(
    alice: User, bob: User, session_of_alice: DiagnosisSession, program: Callable[..., Program],
    private: str,
) -> None:  # fmt: skip
    ask, machines = program(alice), f"/sessions/{session_of_alice.pk}/targets"
    made = ask("POST", "/keys", {"name": "lab", "private_key": private})
    assert made.status_code == 201
    assert (made.json()["kind"], made.json()["usable"]) == ("ssh-ed25519", True)
    assert made.json()["fingerprint"].startswith("SHA256:")
    assert ask("GET", "/keys").json() == {"items": [made.json()], "next": None}
    sent = {"role": "guest", "host": "gpu.example", "stored_key": made.json()["id"]}
    assert ask("POST", machines, sent).status_code == 201
    assert str(session_of_alice.targets.get().stored_key_id) == made.json()["id"]
    for _ in range(2):
        assert ask("DELETE", f"/keys/{made.json()['id']}").status_code == 204
    (gone,) = ask("GET", "/keys").json()["items"]
    assert (gone["usable"], gone["removed_at"] is None) == (False, False)
    assert ask("POST", machines, sent).status_code in {403, 422}


def test_no_answer_and_nothing_that_is_kept_of_it_holds_the_secret(
    alice: User, program: Callable[..., Program], private: str
) -> None:
    ask, sent = program(alice), {"name": "lab", "private_key": private, "passphrase": ""}
    said = [ask("POST", "/keys", sent, Idempotency_Key="k") for _ in range(2)]
    assert said[0].content == said[1].content
    assert StoredKey.objects.count() == 1
    said.append(ask("GET", "/keys"))
    cut = private.replace("-----END", "-----FIN")
    for wrong in (
        {**sent, "private_key": cut},
        {**sent, "private_key": [private]},
        {**sent, "passphrase": "correct horse", "private_key": private * 200},
        {**sent, "certificate": private},
        {**sent, "more": private},
    ):
        refused = ask("POST", "/keys", wrong)
        assert refused.status_code == 422
        said.append(refused)
    kept = Remembered.objects.get()
    told = b"".join([*(answer.content for answer in said), bytes(kept.body)]).decode()
    told += json.dumps(kept.headers) + kept.fingerprint
    assert not [line for line in lines_of(private) if line in told]
    assert "correct horse" not in told


def test_who_sees_uses_and_removes_a_key(
    alice: User, bob: User, carol: User, program: Callable[..., Program], private: str
) -> None:
    asking = {user.username: program(user) for user in (alice, bob, carol)}
    own = asking["alice"]("POST", "/keys", {"name": "hers", "private_key": private}).json()
    shared = {"name": "all", "private_key": private, "shared": True}
    assert asking["alice"]("POST", "/keys", shared).status_code == 403
    everyones = asking["carol"]("POST", "/keys", shared).json()
    seen = {
        name: {one["name"]: one["usable"] for one in ask("GET", "/keys").json()["items"]}
        for name, ask in asking.items()
    }
    assert seen == {"alice": {"hers": True, "all": True}, "bob": {"all": True}, "carol": {"hers": False, "all": True}}
    for key in (own, everyones):
        assert asking["bob"]("DELETE", f"/keys/{key['id']}").status_code == 403
    assert StoredKey.objects.filter(removed_at=None).count() == 2
    assert asking["carol"]("DELETE", f"/keys/{own['id']}").status_code == 204
    assert StoredKey.objects.get(pk=own["id"]).removed_by == carol
    # The page and the API say the same of them.
    browser = Client()
    browser.force_login(alice)
    assert "removed by carol" in html_of(browser.get("/keys"))


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_keys_are_for_operators(bob: User, program: Callable[..., Program], private: str, role: str) -> None:
    User.objects.filter(pk=bob.pk).update(role=role)
    ask = program(bob)
    assert ask("GET", "/keys").status_code == 403
    assert ask("POST", "/keys", {"name": "x", "private_key": private}).status_code == 403
    assert not StoredKey.objects.exists()
