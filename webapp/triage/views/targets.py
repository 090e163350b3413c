"""Adding machines, and accepting their host keys."""

from __future__ import annotations

import asyncio

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST

from agents.agent import AgentError
from agents.facts import View
from agents.host_keys import fetch_host_key
from webapp.triage.forms.target import SshTargetForm
from webapp.triage.models import DiagnosisSession, Event, PinnedHostKey, Target
from webapp.triage.views.look import _look
from webapp.triage.views.shell import acting, on_session, shell

CONTACT_TIMEOUT_S = 10


@require_POST
@on_session
def add(request: HttpRequest, session: DiagnosisSession, role: str) -> HttpResponse:
    if role not in {"guest", "host"}:
        return redirect("triage:session", session.pk)
    user = acting(request)
    if request.POST.get("agent") == "local":
        if not user.is_staff:
            raise PermissionDenied("Only an administrator may run probes on this machine itself.")
        values = {"agent": "local"}
    else:
        form = SshTargetForm(request.POST)
        if not form.is_valid():
            return _look(request, session, View(role), form, status=422)
        values = form.values()
    with transaction.atomic():
        target = Target.objects.create(session=session, role=role, created_by=user, **values)
        Event.record(session, "target_added", user, role=role, target=str(target))
    if target.agent == "ssh":
        return redirect("triage:host_key", session.pk, target.pk)
    return redirect(f"triage:{role}", session.pk)


@on_session
def host_key(request: HttpRequest, session: DiagnosisSession, target_id: int) -> HttpResponse:
    """First contact: shows the fingerprint, and pins the key only on a person's yes."""
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    pinned = session.host_keys.filter(host=target.host, port=target.port).first()
    try:
        key = asyncio.run(
            asyncio.wait_for(fetch_host_key(target.host, target.port), CONTACT_TIMEOUT_S)
        )
    except (AgentError, OSError, TimeoutError) as error:
        problem = str(error) or f"{target.host} did not answer within {CONTACT_TIMEOUT_S} s."
        return _key_page(request, session, target, problem=problem, pinned=pinned)
    if pinned is not None and pinned.key_line != key.line:
        Event.record(session, "host_key_changed", acting(request), host=target.host)
        return _key_page(request, session, target, key=key, pinned=pinned, changed=True)
    if request.method == "POST" and request.POST.get("fingerprint") == key.fingerprint:
        with transaction.atomic():
            PinnedHostKey.objects.get_or_create(
                session=session,
                host=target.host,
                port=target.port,
                defaults={
                    "key_line": key.line,
                    "fingerprint": key.fingerprint,
                    "accepted_by": acting(request),
                },
            )
            Event.record(
                session,
                "host_key_accepted",
                acting(request),
                host=target.host,
                fingerprint=key.fingerprint,
            )
        messages.success(request, f"Host key of {target.host} accepted and pinned.")
        return redirect(f"triage:{target.role}", session.pk)
    return _key_page(request, session, target, key=key, pinned=pinned)


def _key_page(
    request: HttpRequest, session: DiagnosisSession, target: Target, **more: object
) -> HttpResponse:
    context = shell(session, target.role, target=target, **more)
    return TemplateResponse(request, "triage/host_key.html", context)


@require_POST
@on_session
def forget_key(request: HttpRequest, session: DiagnosisSession, target_id: int) -> HttpResponse:
    """A changed key stays blocked until someone who knows why forgets the old one, in words."""
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    if request.POST.get("confirm", "").strip() != target.host:
        messages.error(request, f"Type {target.host} to forget its key.")
    else:
        session.host_keys.filter(host=target.host, port=target.port).delete()
        Event.record(session, "host_key_forgotten", acting(request), host=target.host)
    return redirect("triage:host_key", session.pk, target.pk)
