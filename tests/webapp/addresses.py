"""Every address of the pages, from the URL patterns, and a session that has something at each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from agents.facts import View
from agents.probes import probes_for
from agents.samples import load
from webapp.accounts.models import ApiToken, User
from webapp.handoff.models import OPENED, Answer, Link
from webapp.handoff.scripts import collector_for
from webapp.notices.models import Webhook
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Evidence, OutputChunk, PinnedHostKey, Run, StoredKey, Target
from webapp.records.sessions import member_add
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft
from webapp.review.digests import digest_refresh
from webapp.review.models import Approval, Decision
from webapp.review.threads import comment_add
from webapp.review.workflow import decision_apply, decision_propose
from webapp.runs.samples import open_sample

FOR_ADMINISTRATORS = {
    *("account:people", "account:second_factor_reset", "notices:webhooks"),
    *("session:stuck", "session:unstick"),
}
# The answers to GET of those that only take POST; everything else answers GET.
ONLY_POST = {
    "account:add_passkey",
    "account:email",
    "account:make_token",
    "account:password",
    "account:remove_passkey",
    "account:revoke_token",
    "account:second_factor_off",
    "account:second_factor_reset",
    "account:sign_out",
    "link:accept_link",
    "link:answer",
    "link:decline",
    "link:judge",
    "link:take_back",
    "link:make_link",
    "link:questions",
    "link:revoke_link",
    "link:set_aside",
    "notices:choose",
    "notices:remove",
    "notices:session_remove",
    "decision:close",
    "decision:comment",
    "decision:judge",
    "decision:move",
    "decision:open_bundle",
    "session:add_target",
    "session:assignment",
    "session:cancel_run",
    "session:forget_key",
    "session:members",
    "session:open_session",
    "session:paste",
    "session:read_outputs",
    "session:remove_key",
    "session:sample",
    "session:start_run",
    "session:unstick",
    "session:use_observed",
}


def patterns(resolver: URLResolver | None = None, space: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            if entry.namespace == "api":  # tests/webapp/api/test_operations.py
                continue
            yield from patterns(entry, f"{entry.namespace}:" if entry.namespace else space)
        else:
            yield f"{space}{entry.name}", entry


PATTERNS = dict(patterns())
CONVERTERS = {name: set(entry.pattern.converters) for name, entry in PATTERNS.items()}
# No pages: for machines, files, or connecting to a machine first.
APART = {*("live", "ready", "metrics", "decision:bundle", "decision:report", "session:host_key"), "session:program"}
PAGES = sorted(PATTERNS.keys() - ONLY_POST - APART)


def arguments_of(session: DiagnosisSession, owner: User, number: int = 1) -> dict[str, Any]:
    """number: of its run."""
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="192.0.2.1", user="root", created_by=owner
    )
    run = Run.objects.create(
        session=session, target=target, number=number, kind="probes", state="failed", created_by=owner
    )
    # A number of its own, so that no other session has a decision of the same one.
    decisions = 1 + Decision.objects.count()
    Decision.objects.create(session=session, number=decisions, title="t", proposed_by=owner)
    taken = intake.take_text(session, f"$ uname -r\n{session.pk}\n".encode(), user=owner)
    link, _ = Link.make(session, made_by=owner, person="the admin", purpose="why", hours=1, phases=[])
    key = StoredKey.objects.create(owner=owner, name="a key", kind="ssh-ed25519")
    webhook = Webhook.objects.create(session=session, url="https://1.1.1.1/", sealed="", key_id="", made_by=owner)
    other, _ = Link.make(session, made_by=owner, person="a", purpose="why", hours=1, phases=[])
    answer = Answer.objects.create(link=other, evidence=taken.evidence, understood=1)
    return {
        "answer_id": answer.pk,
        "benchmark": "bench.copy",
        "key_id": key.pk,
        "webhook_id": webhook.pk,
        "link_id": link.pk,
        "phase": "P0",
        "act": "apply",
        "sha256": collector_for(session, View.GUEST, probes_for(View.GUEST)).sha256,
        "session_id": session.pk,
        "role": "guest",
        "target_id": target.pk,
        "run_id": run.pk,
        "run_number": run.number,
        "name": taken.evidence.name,
        "number": decisions,
        "token": "no-such-token",
        "form": "md",
        "slug": "words",
        "handle": ApiToken.make(owner, name="t", scopes=["read"], days=1)[0].handle,
    }


def address(name: str, parts: dict[str, Any]) -> str:
    return reverse(name, kwargs={key: parts[key] for key in CONVERTERS[name]})


def a_full_session(alice: User, bob: User) -> dict[str, Any]:
    """The arguments of every address, for a session beside another one like it."""
    other = open_sample("kpro6@host", owner=bob)
    session = open_sample("kpro6@host", owner=alice)
    member_add(session, user=bob, added_by=alice)
    for user in (bob, alice):
        parts = arguments_of(session, user, number=Run.objects.count() + 1)
    link = Link.objects.get(pk=parts["link_id"])
    link.phases, link.may_approve = ["P2", "P3"], True
    link.save()
    _answered(link, alice)
    decision = _proposed(session, alice, "gpudirect_clique", "engine_profile")
    Approval.objects.create(decision=decision, by=bob, word="approved", content_sha256=decision.content_sha256)
    Decision.objects.filter(pk=decision.pk).update(state="approved")
    decision_apply(decision, user=alice, facts=facts_of(session))
    session.refresh_from_db()
    _proposed(session, alice, "gpudirect_clique")
    _proposed(session, alice, "engine_profile")
    _measured_again(session, alice)
    _runs(session, alice)
    _said(session, alice, bob)
    for each in (other, session):
        digest_refresh(each)
    return parts | {"number": decision.number}


def _proposed(session: DiagnosisSession, user: User, *chosen: str) -> Decision:
    wording = Wording(title="The plan", chosen=chosen, reason="as planned")
    result = session_diagnosis(session)
    decision = decision_draft(session, user=user, wording=wording, result=result)
    decision_propose(decision, user=user)
    return decision


def _answered(link: Link, user: User) -> None:
    for text in (b"$ uname -r\n6.8.12-9-pve\n", b"$ pveversion\npve-manager/8.3.0\n"):
        taken = intake.take_text(link.session, text, user=user)
        Answer.objects.create(link=link, evidence=taken.evidence, understood=1)


def _measured_again(session: DiagnosisSession, user: User) -> None:
    for output in load("kpro6"):
        if output.stage == "after" and not output.is_workload:
            intake.take_text(session, output.text.encode(), user=user, hint=output.name)


def _runs(session: DiagnosisSession, user: User) -> None:
    """What runs on its machines, with accepted host keys."""
    for target in list(session.targets.all()):
        for kind, state in (("probes", "partly"), ("benchmark", "queued"), ("benchmark", "running")):
            _run(session, target, user, kind, state)
    for number in range(3):
        machine = Target.objects.create(
            session=session, role="guest", agent="ssh", host=f"10.0.0.{number}", user="root", created_by=user,
        )  # fmt: skip
        PinnedHostKey.objects.create(
            session=session, host=machine.host, port=22, key_line="k", fingerprint="f", accepted_by=user,
        )  # fmt: skip
        _run(session, machine, user, "probes", "succeeded")


def _run(session: DiagnosisSession, target: Target, user: User, kind: str, state: str) -> None:
    names = ["bench.copy"] if kind == "benchmark" else ["guest.kernel"]
    run = Run.objects.create(
        session=session, target=target, number=session.runs.count() + 1, kind=kind, state=state,
        names=names, created_by=user,
    )  # fmt: skip
    OutputChunk.objects.create(run=run, number=1, body=b"a line\n")
    taken = intake.take_text(session, f"$ uname -r\n{run.pk}\n".encode(), user=user)
    Evidence.objects.filter(pk=taken.evidence.pk).update(run=run)


def _said(session: DiagnosisSession, *people: User) -> None:
    for user in people:
        for anchor in ("", "run:1", "run:2", "hypothesis:compute_bound", "decision:1"):
            comment = comment_add(session, author=user, text="@alice @bob look", anchor=anchor)
            comment_add(session, author=user, text="seen", reply_to=comment)


def asked_in(queries: CaptureQueriesContext) -> int:
    """How many of them ask or change something: where a transaction begins or ends is no query."""
    asks = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "DECLARE")
    return sum(query["sql"].startswith(asks) for query in queries.captured_queries)


def browser_of(user: User | AnonymousUser, parts: dict[str, Any]) -> Client:
    """Signed in, and with the session's link opened."""
    browser = Client()
    if isinstance(user, User):
        browser.force_login(user)
    session = browser.session
    session[OPENED] = [str(parts["link_id"])]
    session.save()
    return browser
