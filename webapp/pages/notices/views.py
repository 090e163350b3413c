"""A person chooses their news, and the webhooks of one session or of all."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp import sealing
from webapp.accounts.models import Role
from webapp.notices import preferences
from webapp.notices.addresses import AddressError
from webapp.notices.kinds import KINDS, Kind
from webapp.notices.models import Delivery, Webhook
from webapp.notices.webhooks import place_host, webhook_add, webhook_remove, webhooks_of
from webapp.pages.account.confirmation import typed
from webapp.pages.session_page import context_of, render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession

SHOWN = 20


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Stores the kinds of news that come by mail."""
    preferences.choose(acting(request), request.POST.getlist("kinds"))
    messages.success(request, "Kept.")
    return redirect("account:account")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """Webhooks of all sessions."""
    if not acting(request).is_staff:
        raise PermissionDenied
    context = {"nav": "webhooks", **context_of(_webhooks_of(request, None, whole=True))}
    return TemplateResponse(request, "notices/webhooks.html", context)


@require_POST
def remove(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    if not acting(request).is_staff:
        raise PermissionDenied
    _remove_webhook(request, get_object_or_404(Webhook, pk=webhook_id, session=None))
    return redirect("notices:webhooks")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def session_webhooks(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Webhooks of this session; only persons who may change them see the whole addresses."""
    whole = Role(session.my_role).covers(Role.OPERATOR)
    own = _webhooks_of(request, session, whole=whole)
    return render_page(request, "notices/session.html", session_page(session), own)


@require_POST
@on_session
def session_remove(request: HttpRequest, session: DiagnosisSession, webhook_id: UUID) -> HttpResponse:
    _remove_webhook(request, get_object_or_404(session.webhooks, pk=webhook_id))
    return redirect("notices:session_webhooks", session.pk)


def _remove_webhook(request: HttpRequest, webhook: Webhook) -> None:
    if typed(request, place_host(webhook), "end that it is told"):
        webhook_remove(webhook, by=acting(request))


@dataclass(frozen=True, slots=True)
class Webhooks:
    """hooks: each with its address, or its host alone. sent: the newest deliveries. may: whether the reader may
    change them. typed: a refused form. secret: of a webhook that was just added."""

    hooks: list[tuple[Webhook, str]]
    sent: Iterable[Delivery]
    kinds: Collection[Kind]
    may: bool
    typed: Mapping[str, Any]
    secret: str | None


def _webhooks_of(request: HttpRequest, session: DiagnosisSession | None, *, whole: bool) -> Webhooks:
    secret = _new_secret(request, session) if request.method == "POST" else None
    sent = Delivery.objects.filter(webhook__session=session, user=None).exclude(webhook=None)
    return Webhooks(
        hooks=[(hook, hook.url if whole else place_host(hook)) for hook in webhooks_of(session)],
        sent=sent.select_related("webhook", "event__session")[:SHOWN],
        kinds=KINDS.values(),
        may=whole,
        typed=request.POST if secret is None else {},
        secret=secret,
    )


def _new_secret(request: HttpRequest, session: DiagnosisSession | None) -> str | None:
    """Adds a webhook. Returns its secret; None, and a message, after a refusal."""
    url, kinds = request.POST.get("url", "").strip(), request.POST.getlist("kinds")
    try:
        return webhook_add(session, url=url, kinds=kinds, by=acting(request))[1]
    except (AddressError, sealing.SealError) as error:
        messages.error(request, str(error))
        return None
