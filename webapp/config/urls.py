"""Addresses, by app."""

from typing import Any

from django.urls import include, path, reverse_lazy

from webapp.api.api import api
from webapp.operations import health, metrics
from webapp.pages.help.api import api_help

handler500 = "webapp.config.error_responses.failed"
API_HELP: dict[str, Any] = {"describe": api.get_openapi_schema, "description": reverse_lazy("api:openapi-json")}
urlpatterns = [
    path("healthz/live", health.live, name="live"),
    path("healthz/ready", health.ready, name="ready"),
    path("metrics", metrics.metrics, name="metrics"),
    path("", include("webapp.api.urls")),
    path("help/api", api_help, API_HELP, name="api_help"),
    path("", include("webapp.pages.help.urls")),
    path("", include("webapp.pages.session.urls")),
    path("", include("webapp.pages.account.urls")),
    path("", include("webapp.pages.decision.urls")),
    path("", include("webapp.pages.link.urls")),
    path("", include("webapp.pages.notices.urls")),
]
