"""A measurement's program as a file, for a machine that Peerpath cannot reach."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from agents.benchmark import all_benchmarks
from webapp.pages.shell import on_session
from webapp.records.models import DiagnosisSession
from webapp.runs.manual_run import file_of, program


@require_safe
@on_session
def program_file(request: HttpRequest, session: DiagnosisSession, benchmark: str) -> HttpResponse:
    """The exact bytes that a run would send; the page shows their hash."""
    try:
        raw = program(benchmark)
    except KeyError:
        raise Http404 from None
    response = HttpResponse(raw, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{file_of(all_benchmarks()[benchmark])}"'
    return response
