"""Addresses, by app."""

from __future__ import annotations

from django.urls import include, path

from webapp.api.api import api
from webapp.config import health, metrics
from webapp.help.api import api_help

handler500 = "webapp.config.failing.failed"
urlpatterns = [
    path("healthz/live", health.live, name="live"),
    path("healthz/ready", health.ready, name="ready"),
    path("metrics", metrics.metrics, name="metrics"),
    path("", include("webapp.api.urls")),
    path("help/api", api_help, {"describe": api.get_openapi_schema}, name="api_help"),
    path("", include("webapp.help.urls")),
    path("", include("webapp.triage.urls")),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.review.urls")),
    path("", include("webapp.handoff.urls")),
    path("", include("webapp.notices.urls")),
]
