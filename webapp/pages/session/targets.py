"""Pages that add machines and accept their host keys."""

import re
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from agents.agent import AgentError
from agents.facts import View
from webapp.pages.account.confirmation import typed
from webapp.pages.forms.target import SshTargetForm
from webapp.pages.session.look import look_page
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession, Event, PinnedHostKey, Target
from webapp.runs.credentials import RefusedError, refuse_unless_keys_are_theirs
from webapp.runs.host_key_check import Contact, first_contact, host_key_pin
from webapp.runs.targets import refuse_unless_may_add, target_add


@require_POST
@on_session
def add(request: HttpRequest, session: DiagnosisSession, role: str) -> HttpResponse:
    if role not in {"guest", "host"}:
        return redirect("session:session", session.pk)
    user = acting(request)
    agent = "local" if request.POST.get("agent") == "local" else "ssh"
    refuse_unless_may_add(user, agent)
    fields: dict[str, Any] = {"agent": agent}
    if agent == "ssh":
        form = SshTargetForm(request.POST, user=user)
        if not form.is_valid():
            return look_page(request, session, View(role), form, status=422)
        fields = form.values()
    target = target_add(session, role, user, fields)
    if target.agent == "ssh":
        return redirect("session:host_key", session.pk, target.pk)
    return redirect(f"session:{role}", session.pk)


@dataclass(frozen=True, slots=True)
class HostKeyPage:
    """contact: the machine's answer, None if it did not answer. pinned: the key accepted before."""

    target: Target
    contact: Contact | None = None
    pinned: PinnedHostKey | None = None
    problem: str = ""


@require_http_methods(["GET", "POST"])
@on_session
def host_key(request: HttpRequest, session: DiagnosisSession, target_id: int) -> HttpResponse:
    """First contact: shows the fingerprint, and pins the key only on a person's yes."""
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    try:
        contact = first_contact(target, acting(request))
    except (AgentError, RefusedError) as error:
        return _key_page(request, session, HostKeyPage(target, problem=str(error)))
    pinned = session.host_keys.filter(host=contact.host, port=contact.port).first()
    if contact.changed:
        Event.record(session, "host_key_changed", acting(request), host=contact.host)
    elif request.method == "POST" and request.POST.get("fingerprint") == contact.host_key.fingerprint:
        host_key_pin(session, contact, acting(request))
        messages.success(request, f"Host key of {contact.host} accepted and pinned.")
        if contact.host == target.host and contact.port == target.port:
            return redirect(f"session:{target.role}", session.pk)
        return redirect("session:host_key", session.pk, target.pk)
    return _key_page(request, session, HostKeyPage(target, contact, pinned))


def _key_page(request: HttpRequest, session: DiagnosisSession, own: HostKeyPage) -> HttpResponse:
    return render_page(request, "session/host_key.html", session_page(session, own.target.role), own)


@require_POST
@on_session
def forget_key(request: HttpRequest, session: DiagnosisSession, target_id: int) -> HttpResponse:
    """A changed key stays blocked until someone who knows why forgets the old one, in words."""
    target = get_object_or_404(session.targets, pk=target_id, agent="ssh")
    host, port = request.POST.get("host", ""), request.POST.get("port", "")
    try:
        refuse_unless_keys_are_theirs(target, acting(request))
    except RefusedError as error:
        # A member who forgets the key would hide its change from the others.
        raise PermissionDenied("Only who may connect to this machine may forget its key.") from error
    known = bool(host) and re.fullmatch(r"[0-9]{1,5}", port)
    if typed(request, host or target.host, "forget its key") and known:
        session.host_keys.filter(host=host, port=int(port)).delete()
        Event.record(session, "host_key_forgotten", acting(request), host=host)
    return redirect("session:host_key", session.pk, target.pk)
