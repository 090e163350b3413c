"""Every operation, taken from the API's own description: whose token, of which scope, in which role gets
an answer, and that a stranger cannot tell what is there from what is not."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.pages import html_of
from tests.webapp.addresses import arguments_of
from tests.webapp.api.conftest import ROOT, Program
from tests.webapp.test_permissions import everything
from webapp.accounts.models import GIVEN, ApiToken, Role, Scope, User
from webapp.api.api import api
from webapp.pages.help.api import EXAMPLES
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import member_add, session_open

pytestmark = pytest.mark.django_db

SCHEMA = api.get_openapi_schema()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path.removeprefix("/api/v1"), operation)
    for path, methods in SCHEMA["paths"].items()
    for method, operation in methods.items()
}
OF_A_SESSION = sorted(name for name, (_, path, _) in OPERATIONS.items() if "{session_id}" in path)
OF_ITS_PARTS = sorted(
    name
    for name in OF_A_SESSION
    if any(part in OPERATIONS[name][1] for part in ("{target_id}", "{run_id}", "{name}", "{number}"))
    or any(part in OPERATIONS[name][1] for part in ("{link_id}", "{sha256}", "{answer_id}"))
    or "{webhook_id}" in OPERATIONS[name][1]
)
CHANGING = sorted(name for name in OF_A_SESSION if OPERATIONS[name][0] != "GET")
# What a role below an operator's may do besides reading; a new operation that changes something is the
# operators' until it is named here.
FOR_REVIEWERS = {"comment", "judge_decision"}
# With the keys of this machine, or on this machine: tests/webapp/runs has who may.
REACHING = {"add_target", "look_at_key", "accept_key", "forget_key"}
# A body that is well formed, so that what is refused is refused for who asks.
BODIES: dict[str, Any] = {
    "open_session": {},
    "open_sample_session": {"stage": "first"},
    "change_session": {"own_words": "x"},
    "use_measured": {"evidence": "x"},
    "add_target": {"role": "guest", "host": "gpu.example"},
    "accept_key": {"fingerprint": "SHA256:x"},
    "start_run": {"target": 1},
    "run_again": {},
    "paste_evidence": {"text": "$ uname -r\n6.8.12-9-pve\n"},
    "assign_lines": {"first": 1, "last": 1, "view": "guest"},
    "draft_decision": {"chosen": ["nothing"], "reason": "x"},
    "change_draft": {"chosen": ["nothing"], "reason": "x"},
    "judge_decision": {"approves": False, "reason": "x"},
    "close_decision": {"state": "reverted", "outcome": "x"},
    "comment": {"text": "x"},
    "set_answer_aside": {},
    "add_webhook": {"url": "https://1.1.1.1/", "kinds": ["run_finished"]},
    "make_link": {},
}
QUERIES = {"forget_key": "?host=192.0.2.1&port=22", "find_lines": "?words=x"}
FILES = {"upload_evidence": "file", "open_bundle_session": "bundle"}


@pytest.fixture
def parts(session_of_alice: DiagnosisSession, alice: User) -> dict[str, Any]:
    found = arguments_of(session_of_alice, alice)
    about = {"username": alice.username, "role": "guest", "form": "md"}
    return {**found, **about}


def scope_of(operation: Any) -> str:
    return "".join(operation["security"][0]["Bearer"])


def asked(ask: Program, name: str, parts: dict[str, Any]) -> Any:
    method, path, _ = OPERATIONS[name]
    address = path.format(**parts)
    address += QUERIES.get(name, "")
    if name in FILES:
        return _with_file(ask, FILES[name], address)
    return ask(method, address, BODIES.get(name), If_Match="*")


def _with_file(ask: Program, field: str, address: str) -> Any:
    sent = {field: SimpleUploadedFile("a.txt", b"$ uname -r\n6.8.12\n")}
    headers: Any = {"authorization": f"Bearer {ask.token}"}
    return Client().post(f"/api/v1{address}", sent, headers=headers)


def test_every_operation_is_known_to_these_tests() -> None:
    assert len(OPERATIONS) > 55
    bodies = {name for name, (_, _, found) in OPERATIONS.items() if "requestBody" in found}
    assert bodies == BODIES.keys() | FILES.keys()
    assert OPERATIONS.keys() >= FOR_REVIEWERS | REACHING


def test_the_description_is_of_openapi_3_1_and_names_each_thing_once() -> None:
    assert SCHEMA["openapi"] == "3.1.0"
    for name, (_, _, operation) in OPERATIONS.items():
        assert scope_of(operation) in Scope.values, name
        assert operation["description"].strip(), name
        refused = operation["responses"][401]["content"]
        assert refused["application/problem+json"], name
    # Two classes of one name would hide each other.
    sources = (ROOT / "webapp" / "api" / "routes").glob("*.py")
    names = [name for file in sources for name in re.findall(r"^class (\w+)", file.read_text(), re.M)]
    assert len(names) > 50
    assert len(names) == len(set(names))


def test_the_help_page_names_every_operation_and_its_examples(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    page = unescape(html_of(browser.get("/help/api"))).replace("<wbr>", "")
    for name, (method, path, operation) in OPERATIONS.items():
        assert f"{method} {path}" in page, name
        assert operation["description"] in page, name
    for example in EXAMPLES:
        assert example.command in page, example.title


def test_who_has_no_token_gets_nothing(parts: dict[str, Any], alice: User) -> None:
    before = everything(parts)
    signed_in = Client()
    signed_in.force_login(alice)  # a browser's cookie is no token
    for name, (method, path, _) in OPERATIONS.items():
        answer = signed_in.generic(method, f"/api/v1{path.format(**parts)}")
        assert answer.status_code == 401, name
        assert answer.headers["Content-Type"] == "application/problem+json", name
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), name
    assert everything(parts) == before


def test_a_token_goes_no_further_than_its_scopes(
    program: Callable[..., Program], parts: dict[str, Any], alice: User
) -> None:
    before = everything(parts)
    without = {scope: program(alice, *[other for other in Scope.values if other != scope]) for scope in Scope.values}
    for name, (_, _, operation) in OPERATIONS.items():
        needed = scope_of(operation)
        answer = asked(without[needed], name, parts)
        assert answer.status_code == 403, name
        assert f"needs the scope {needed}" in answer.json()["detail"], name
    assert everything(parts) == before


def test_a_stranger_cannot_tell_a_session_from_none(
    program: Callable[..., Program], parts: dict[str, Any], bob: User
) -> None:
    before = everything(parts)
    ask, nowhere = program(bob), {**parts, "session_id": uuid.uuid4()}
    for name in OF_A_SESSION:
        theirs, nobodys = asked(ask, name, parts), asked(ask, name, nowhere)
        assert theirs.status_code == nobodys.status_code == 404, name
        assert theirs.json() == nobodys.json(), name
    assert everything(parts) == before


def test_a_thing_of_another_session_is_not_reached_through_ones_own(
    program: Callable[..., Program], parts: dict[str, Any], bob: User
) -> None:
    own = session_open(owner=bob, title="Bob's own")
    before, ask = everything(parts), program(bob)
    for name in OF_ITS_PARTS:
        answer = asked(ask, name, {**parts, "session_id": own.pk})
        assert answer.status_code == 404, name
    assert everything(parts) == before


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
def test_a_role_does_not_change_what_it_may_not(
    program: Callable[..., Program], parts: dict[str, Any], alice: User, bob: User, role: Role
) -> None:
    session = DiagnosisSession.objects.get(pk=parts["session_id"])
    member_add(session, user=bob, added_by=alice, role=role)
    before, ask = everything(parts), program(bob)
    for name in CHANGING:
        least = Role.REVIEWER if name in FOR_REVIEWERS else Role.OPERATOR
        if not role.covers(least):
            answer = asked(ask, name, parts)
            assert answer.status_code == 403, name
            assert f"this needs a {least}" in answer.json()["detail"], name
    assert everything(parts) == before


@pytest.mark.parametrize("name", CHANGING)
def test_a_role_changes_what_it_may(
    program: Callable[..., Program], parts: dict[str, Any], alice: User, bob: User, name: str
) -> None:
    session = DiagnosisSession.objects.get(pk=parts["session_id"])
    least = Role.REVIEWER if name in FOR_REVIEWERS else Role.OPERATOR
    member_add(session, user=bob, added_by=alice, role=least)
    answer = asked(program(bob), name, parts)
    assert answer.status_code != 403 or name in REACHING
    assert answer.status_code < 500


def test_members_and_administrators_read(
    program: Callable[..., Program], parts: dict[str, Any], alice: User, bob: User, carol: User
) -> None:
    session = DiagnosisSession.objects.get(pk=parts["session_id"])
    member_add(session, user=bob, added_by=alice, role=Role.VIEWER)
    asking = [program(user) for user in (alice, bob, carol)]
    for name in sorted(set(OF_A_SESSION) - set(CHANGING) - REACHING):
        for ask in asking:
            answer = asked(ask, name, parts)
            nothing_to_make = name == "phase_script" and answer.status_code == 404
            assert answer.status_code == 200 or nothing_to_make, name


def test_what_has_an_etag_is_sent_once(program: Callable[..., Program], parts: dict[str, Any], carol: User) -> None:
    ask, tagged = program(carol), set()
    for name, (method, path, operation) in OPERATIONS.items():
        if method != "GET" or name in REACHING:
            continue
        address = path.format(**parts)
        tag = ask("GET", address).headers.get("ETag")
        accepts = {one["name"] for one in operation["parameters"]}
        assert ("If-None-Match" in accepts) == (304 in operation["responses"]) == bool(tag), name
        if tag is None:
            continue
        tagged.add(name)
        for known in (tag, f'"x", W/{tag}', "*"):
            again = ask("GET", address, If_None_Match=known)
            assert (again.status_code, again.content) == (304, b""), name
            assert again.headers["ETag"] == tag, name
        assert ask("GET", address, If_None_Match='"x"').json(), name
    assert tagged == {"read_session", "read_decision", "read_diagnosis"}


@pytest.mark.parametrize("role", [role for role, _ in GIVEN])
@pytest.mark.parametrize("name", ["open_session", "open_sample_session"])
def test_only_an_operators_account_opens_sessions(
    program: Callable[..., Program], bob: User, role: str, name: str
) -> None:
    User.objects.filter(pk=bob.pk).update(role=role)
    answer = asked(program(bob), name, {})
    assert answer.status_code == (201 if role == "operator" else 403)
    assert DiagnosisSession.objects.filter(owner=bob).exists() == (role == "operator")


def test_lists_show_only_what_is_ones_own(program: Callable[..., Program], parts: dict[str, Any], bob: User) -> None:
    assert program(bob)("GET", "/sessions").json() == {"items": [], "next": None}


def test_what_an_account_may_not_do_any_more_its_tokens_may_not(
    program: Callable[..., Program], parts: dict[str, Any], alice: User
) -> None:
    ask = program(alice)
    assert asked(ask, "read_session", parts).status_code == 200
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert asked(ask, "read_session", parts).status_code == 401
    assert ApiToken.objects.exclude(used_at=None).count() == 1
