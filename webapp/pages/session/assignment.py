"""A person assigns lines that the parsers could not place, or that could come from either machine."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST

from agents.facts import View
from webapp.pages.forms.assignment import AssignmentForm
from webapp.pages.shell import acting, on_session
from webapp.records.assignments import assign, take_back
from webapp.records.models import DiagnosisSession


@require_POST
@on_session
def assignment(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Answers with the remaining questions on the same evidence, or redirects to its page."""
    form = AssignmentForm(session, request.POST)
    valid = form.is_valid()
    evidence = form.cleaned_data.get("evidence")
    if evidence is None:
        raise Http404("No such evidence in this session.")
    if valid:
        answers = form.cleaned_data
        lines, user = (answers["first"], answers["last"]), acting(request)
        if answers["take_back"]:
            sentence = take_back(evidence, lines, user=user)
        else:
            view = View(answers["view"]) if answers["view"] else None
            sentence = assign(evidence, lines, user=user, reader=answers["reader"], view=view)
    else:
        sentence = " ".join(str(error) for errors in form.errors.values() for error in errors)
    if request.headers.get("HX-Request"):
        context = {"session": session, "evidence": evidence, "sentence": sentence}
        return TemplateResponse(request, "session/placing.html", context)
    (messages.success if valid else messages.error)(request, sentence)
    return redirect("session:evidence", session.pk, evidence.name)
