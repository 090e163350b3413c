"""Styles and scripts are sent compressed; pages are not, because they hold secrets beside what was typed."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware


def compressed_files(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], Any]:
    compressed = GZipMiddleware(get_response)

    def middleware(request: HttpRequest) -> Any:
        is_file = request.path_info.startswith(f"/{settings.STATIC_URL.lstrip('/')}")
        return compressed(request) if is_file else get_response(request)

    return middleware
