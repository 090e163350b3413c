"""A script as a download."""

from django.http import HttpRequest, HttpResponse

from webapp.accounts.models import User
from webapp.handoff.models import HandedScript
from webapp.handoff.scripts import download_record


def download(request: HttpRequest, script: HandedScript, *, by: User | None) -> HttpResponse:
    """Plain text that no browser runs. ?show=1 and HEAD show it, and do not count as a download."""
    response = HttpResponse(script.text, content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"
    if request.GET.get("show"):
        return response
    response["Content-Disposition"] = f'attachment; filename="{script.name}"'
    if request.method != "HEAD":
        download_record(script, by=by)
    return response
