"""The administrators' page of runs and outputs that do not move by themselves, with acts that help."""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.operations import health
from webapp.operations.stuck import LONG, SHOWN
from webapp.operations.stuck import stuck as stuck_now
from webapp.pages.shell import acting
from webapp.records import blob_store, intake
from webapp.records.models import Evidence, Run
from webapp.runs import lifecycle, queue

View = Callable[[HttpRequest], HttpResponse]


def for_administrators(view: View) -> View:
    @wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        if not request.user.is_staff:
            raise PermissionDenied
        return view(request)

    return wrapped


@never_cache
@require_safe
@for_administrators
def stuck(request: HttpRequest) -> HttpResponse:
    context = {
        "nav": "stuck",
        "stuck": stuck_now(timezone.now()),
        "checks": health.checks(),
        "long_minutes": int(LONG.total_seconds() // 60),
        "shown": SHOWN,
    }
    return TemplateResponse(request, "session/stuck.html", context)


@require_POST
@for_administrators
def unstick(request: HttpRequest) -> HttpResponse:
    """Acts on one row: do=end, send or cancel a run, or read an evidence again."""
    do, key = request.POST.get("do", ""), request.POST.get("key", "")
    acts: dict[str, Callable[[HttpRequest, str], str]] = {
        "end": _end_run,
        "send": _send_run,
        "cancel": _cancel_run,
        "read": _read_evidence,
    }
    try:
        sentence = acts[do](request, key)
    except (KeyError, Run.DoesNotExist, Evidence.DoesNotExist, ValidationError, ValueError):
        messages.error(request, "There is no such thing to move; reload the page.")
    else:
        messages.info(request, sentence)
    return redirect("session:stuck")


def _end_run(request: HttpRequest, key: str) -> str:
    run = Run.objects.get(pk=key)
    ended = lifecycle.expire_lease(run.pk, timezone.now())
    return f"Run {run.number} has ended as lost." if ended else f"Run {run.number} has moved by itself."


def _send_run(request: HttpRequest, key: str) -> str:
    run = Run.objects.get(pk=key)
    sent = queue.send_run(run.pk)
    return f"Run {run.number} was sent again." if sent else "The broker is out of reach; nothing was sent."


def _cancel_run(request: HttpRequest, key: str) -> str:
    run = Run.objects.select_related("session").get(pk=key)
    cancelling = lifecycle.request_cancel(run, acting(request))
    return f"Run {run.number} is being cancelled." if cancelling else f"Run {run.number} had already ended."


def _read_evidence(request: HttpRequest, key: str) -> str:
    evidence = Evidence.objects.get(pk=key)
    try:
        changed = intake.reread_one(evidence)
    except blob_store.LostError as error:
        return str(error)
    return f"{evidence.name} was read." if changed else f"{evidence.name}: nothing is recognised in it."
