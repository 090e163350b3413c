"""The responses to requests that failed here. A database or storage that is away is reported as temporary."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader

from webapp.records.blob_store import LostError

RETRY_AFTER_S = 10


def failed(request: HttpRequest) -> HttpResponse:
    """Django calls it while the error is at hand, and logs it. The page asks no database for anything."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError | LostError):
        page = loader.get_template("503.html").render({"sent": request.method == "POST"})
        return HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER_S)})
    return HttpResponse(loader.get_template("500.html").render(), status=500)
