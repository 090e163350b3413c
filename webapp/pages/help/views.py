"""The help's pages: each is a template with a context from the code."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.facts import View
from webapp.accounts.models import GIVEN
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.reference import timing
from webapp.diagnosis.reference.beliefs import BELIEFS
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.reference.machines import H200_PAIR
from webapp.pages.help import catalogue
from webapp.pages.help.commands import commands
from webapp.pages.help.founding import worked
from webapp.pages.help.pages import PAGES
from webapp.pages.session_page import STEPS


def _operator_context() -> dict[str, Any]:
    return {"steps": STEPS}


def _reviewer_context() -> dict[str, Any]:
    return {"bases": list(Basis)}


def _host_admin_context() -> dict[str, Any]:
    return {"probes": catalogue.probes(View.HOST)}


def _administrator_context() -> dict[str, Any]:
    return {"given": GIVEN, "public": settings.PUBLIC_URL}


def _reasoning_context() -> dict[str, Any]:
    return {"gates": catalogue.gates(), "worked": worked(), "statuses": list(OptionStatus)}


def _measuring_context() -> dict[str, Any]:
    return {
        "machine": H200_PAIR,
        "size_bytes": timing.SIZE_BYTES,
        "copies": timing.COPIES,
        "inside": timing.COPIES[1],
        "all_reduces": timing.ALL_REDUCES,
        "benchmarks": catalogue.benchmarks(),
    }


def _probes_context() -> dict[str, Any]:
    return {"roles": [(view, catalogue.probes(view)) for view in (View.GUEST, View.HOST)]}


def _benchmarks_context() -> dict[str, Any]:
    return {"benchmarks": catalogue.benchmarks()}


def _rules_context() -> dict[str, Any]:
    return {
        "gates": catalogue.gates(),
        "hypotheses": catalogue.hypotheses(),
        "contradictions": catalogue.contradictions(),
        "beliefs": BELIEFS,
    }


def _options_context() -> dict[str, Any]:
    return {"phases": catalogue.options()}


def _glossary_context() -> dict[str, Any]:
    return {"glossary": GLOSSARY}


def _commands_context() -> dict[str, Any]:
    return {"commands": commands()}


_CONTEXTS: dict[str, Callable[[], dict[str, Any]]] = {
    "operator": _operator_context,
    "reviewer": _reviewer_context,
    "host-admin": _host_admin_context,
    "administrator": _administrator_context,
    "reasoning": _reasoning_context,
    "measuring": _measuring_context,
    "probes": _probes_context,
    "benchmarks": _benchmarks_context,
    "rules": _rules_context,
    "options": _options_context,
    "words": _glossary_context,
    "commands": _commands_context,
}


@login_not_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    context = {"nav": "help"}
    return TemplateResponse(request, "help/index.html", context)


@login_not_required
@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Raises Http404 for an unknown page. Pages for people with an account need sign-in."""
    extra_context, help_page = _CONTEXTS.get(slug), PAGES.get(slug)
    if extra_context is None or help_page is None:
        raise Http404(f"There is no help on {slug}.")
    if not help_page.open and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    context = {"nav": "help", "here": help_page, **extra_context()}
    return TemplateResponse(request, f"help/{slug.replace('-', '_')}.html", context)
